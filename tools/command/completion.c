// Verbs completion, complete and manual: shell completion and man pages, made from the tables of
// verbs and flags. The script for a shell contains no names. It runs `belfry complete` with the
// words so far, so it fits every version, and one implementation serves three shells.
//
// The answer has a line for each possible word, with a tab and a short description. Without lines
// the shell offers file names. The last of the words is incomplete: the user is typing it.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "belfry/package.h"
#include "command/flags.h"
#include "command/results.h"
#include "command/verbs.h"
#include "launch/engine/registry.h"

// --- Scripts -------------------------------------------------------------------------------------

// bash splits words at "=", so `--flag=x` is three words, also among the earlier ones.
static const char bash[] =
    "_belfry() {\n"
    "    local word about\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word about; do\n"
    "        COMPREPLY+=(\"$word\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
    "2>/dev/null)\n"
    "}\n"
    "complete -o bashdefault -o default -F _belfry belfry\n";

static const char zsh[] =
    "#compdef belfry\n"
    "_belfry() {\n"
    "    local -a lines\n"
    "    lines=(\"${(@f)$($words[1] complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    lines=(\"${(@)lines//:/\\\\:}\")\n"
    "    lines=(\"${(@)lines/$'\\t'/:}\")\n"
    "    if [[ -n \"${lines[1]}\" ]]; then\n"
    "        _describe -V belfry lines\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ \"${funcstack[1]}\" = _belfry ]]; then\n"
    "    _belfry \"$@\"\n"
    "else\n"
    "    compdef _belfry belfry\n"
    "fi\n";

static const char fish[] = "function __belfry\n"
                           "    set -l words (commandline -opc) (commandline -ct)\n"
                           "    set -l lines ($words[1] complete -- $words[2..] 2>/dev/null)\n"
                           "    if test (count $lines) -gt 0\n"
                           "        printf '%s\\n' $lines\n"
                           "    else\n"
                           "        __fish_complete_path (commandline -ct)\n"
                           "    end\n"
                           "end\n"
                           "complete -c belfry -f -a '(__belfry)'\n";

bel_status *bel_verb_completion(const bel_options *options, int *out_exit_code)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    (void)out_exit_code; // stays 0
    size_t count;
    const char *const *words = bel_options_arguments(options, &count);
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        if (count == 1 && strcmp(words[0], scripts[i].shell) == 0)
            return bel_results_write(scripts[i].script);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a shell, bash, zsh or fish, got %s",
                   count == 0   ? "nothing"
                   : count == 1 ? words[0]
                                : "more than one word");
}

// --- Completing ----------------------------------------------------------------------------------

typedef struct answer {
    const char *written; // beginning of the word that the user types
    const char *prefix;  // its part before that, such as "--flag="
    bel_str lines;
} answer;

static void offer(answer *a, const char *word, const char *about)
{
    if (strncmp(word, a->written, strlen(a->written)) != 0) return;
    bel_str_printf(&a->lines, "%s%s\t%s\n", a->prefix, word, about);
}

// Offers the next word of each verb that begins with these words; groups such as "jobs" once.
static void offer_verbs(answer *a, int count, const char *const *words)
{
    const char *before = "";
    size_t before_length = 0;
    for (size_t i = 0; bel_verb_at(i) != NULL; i++) {
        const bel_verb *v = bel_verb_at(i);
        const char *rest = v->name;
        bool same = v->summary != NULL;
        for (int k = 0; k < count && same; k++) {
            size_t length = strlen(words[k]);
            same = strncmp(rest, words[k], length) == 0 && rest[length] == ' ';
            rest += same ? length + 1 : 0;
        }
        size_t length = strcspn(rest, " ");
        bool again = length == before_length && strncmp(rest, before, length) == 0;
        if (!same || again) continue;
        char *word = bel_xstrndup(rest, length);
        offer(a, word, rest[length] == '\0' ? v->summary : "...");
        bel_free(word);
        before = rest;
        before_length = length;
    }
    if (count == 0) offer(a, "help", "this text, or the flags of a verb");
}

// Offers flags, with dashes as the user types them. A switch that is on by default is offered as
// its negation.
static void offer_flags(answer *a, const bel_options *options)
{
    bool dashes = a->written[0] == '-' && a->written[1] == '-' && strchr(a->written + 2, '-');
    const bel_option *option;
    for (size_t i = 0; (option = bel_options_at(options, i)) != NULL; i++) {
        bool is_on = option->type == BEL_OPTION_BOOL && strcmp(option->otherwise, "true") == 0;
        const char *front = option->name[1] == '\0' ? "-" : is_on ? "--no_" : "--";
        char *word = bel_strf("%s%s", front, option->name);
        for (char *at = word + 2; dashes && (at = strchr(at, '_')) != NULL;)
            *at = '-';
        offer(a, word, option->help);
        bel_free(word);
    }
}

// Offers the words of a choice: "bash|zsh|fish".
static void offer_choices(answer *a, const char *choices, const char *about)
{
    while (*choices != '\0') {
        size_t length = strcspn(choices, "|");
        char *word = bel_xstrndup(choices, length);
        if (strchr(word, '*') == NULL) offer(a, word, about); // otherwise file names
        bel_free(word);
        choices += length + (choices[length] == '|');
    }
}

static void offer_values(answer *a, const bel_option *option)
{
    const char *choices = option->type == BEL_OPTION_STRING ? option->accepts : NULL;
    if (option->type == BEL_OPTION_BOOL) choices = "true|false";
    if (choices != NULL) offer_choices(a, choices, option->name);
}

static void offer_jobs(answer *a)
{
    bel_job_record **records = NULL;
    size_t count = 0;
    bel_status_ignore(bel_registry_list(&records, &count)); // no names on failure
    for (size_t i = 0; i < count; i++) {
        offer(a, records[i]->name, bel_job_state_name(records[i]->state));
        bel_job_record_destroy(records[i]);
    }
    bel_free(records);
}

// Finds the verb for the words after "--": flags of training, or a program with its arguments.
static const bel_verb *find_inner(int *count, const char *const **words, const bel_verb *v)
{
    static const char *const training[] = {"train_and_evaluate"};
    int used;
    for (int i = 0; i < *count; i++) {
        if (strcmp((*words)[i], "--") != 0 || strstr(v->arguments, "-- ") == NULL) continue;
        *count -= i + 1;
        *words += i + 1;
        bool program = *count > 0 && (*words)[0][0] != '-';
        return program ? NULL : bel_verb_find(1, training, &used);
    }
    return v;
}

// Finds the flag whose value the user types: after "--flag", after "--flag" and "=" as bash splits
// them, or after "--flag=" in the word itself, which moves to the prefix. NULL: no flag.
static const bel_option *find_flag(answer *a, const bel_options *options, int count,
                                   const char *const *words, char **out_prefix)
{
    const char *equals = strchr(a->written, '='), *name = NULL;
    *out_prefix = NULL;
    if (strncmp(a->written, "--", 2) == 0 && equals != NULL) {
        *out_prefix = bel_xstrndup(a->written, (size_t)(equals + 1 - a->written));
        char *flag = bel_xstrndup(a->written + 2, (size_t)(equals - a->written) - 2);
        const bel_option *option = bel_options_find(options, flag);
        bel_free(flag);
        a->prefix = *out_prefix;
        a->written = equals + 1;
        return option;
    }
    bool divided = count > 0 && strcmp(words[count - 1], "=") == 0;
    if (strcmp(a->written, "=") == 0 && count > 0) {
        a->written = "";
        name = words[count - 1];
    } else if (count > (divided ? 1 : 0)) {
        name = words[count - (divided ? 2 : 1)];
    }
    if (name == NULL || strncmp(name, "--", 2) != 0) return NULL;
    const bel_option *option = bel_options_find(options, name + 2);
    bool alone = option != NULL && option->type == BEL_OPTION_BOOL && !divided;
    return alone ? NULL : option; // a switch takes no separate word as its value
}

// Completes the last word; `words` are those before it.
static void answer_complete(answer *a, int count, const char *const *words)
{
    bool helps = count > 0 && strcmp(words[0], "help") == 0;
    if (helps) count--, words++;
    int used;
    const bel_verb *v = bel_verb_find(count, words, &used);
    if (v == NULL) {
        offer_verbs(a, count, words);
        return;
    }
    count -= used, words += used;
    const bel_verb *inner = find_inner(&count, &words, v);
    if (inner == NULL || helps) return;
    char *prefix;
    bel_options *options = bel_flags_create(inner->use);
    const bel_option *flag = find_flag(a, options, count, words, &prefix);
    bool of_jobs = strncmp(v->name, "jobs ", 5) == 0 && inner == v && v->takes_arguments;
    if (flag != NULL) {
        offer_values(a, flag);
    } else if (a->written[0] == '-') {
        offer_flags(a, options);
    } else if (strchr(v->arguments, '|') != NULL && count == 0) {
        offer_choices(a, v->arguments, v->name);
    } else if (of_jobs && v->use != BEL_VERB_JOBS_SUBMIT) {
        offer_jobs(a);
    }
    bel_options_destroy(options);
    bel_free(prefix);
}

bel_status *bel_verb_complete(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    size_t count;
    const char *const *words = bel_options_arguments(options, &count);
    answer a = {.written = count > 0 ? words[count - 1] : "", .prefix = ""};
    answer_complete(&a, count > 0 ? (int)count - 1 : 0, words);
    bel_status *status = a.lines.length > 0 ? bel_results_write(a.lines.text) : NULL;
    bel_str_deinit(&a.lines);
    return status;
}

// --- The manual ----------------------------------------------------------------------------------

// Makes "belfry-jobs-list" from a verb's name.
static char *page_name(const char *verb)
{
    char *name = bel_strf("belfry-%s", verb);
    for (char *at = name; (at = strchr(at, ' ')) != NULL;)
        *at = '-';
    return name;
}

static void begin_page(const char *name, const char *about, bel_str *out)
{
    bel_str_printf(out, ".TH %s 1 \"\" \"Belfry %s\" \"Belfry\"\n.SH NAME\n", name, bel_version());
    bel_options_manual_text(name, out);
    bel_str_puts(out, " \\- ");
    bel_options_manual_text(about, out);
    bel_str_puts(out, "\n.SH SYNOPSIS\n");
}

static bel_status *write_page(const char *folder, const char *name, bel_str *page)
{
    char *file = bel_strf("%s.1", name), *path = bel_path_join(folder, file);
    bel_status *status = bel_file_write_atomic(path, page->text, page->length);
    bel_str_deinit(page);
    bel_free(path);
    bel_free(file);
    return status;
}

static bel_status *write_verb(const char *folder, const bel_verb *v)
{
    bel_str page = {0};
    char *name = page_name(v->name);
    begin_page(name, v->summary, &page);
    bel_str_printf(&page, "\\fBbelfry ");
    bel_options_manual_text(v->name, &page);
    bel_str_puts(&page, "\\fR ");
    bel_options_manual_text(v->arguments, &page);
    bel_str_puts(&page, "\n.SH FLAGS\n");
    bel_options *options = bel_flags_create(v->use);
    bel_options_manual(options, &page);
    bel_options_destroy(options);
    bel_str_puts(&page, ".SH SEE ALSO\n.BR belfry (1)\n");
    bel_status *status = write_page(folder, name, &page);
    bel_free(name);
    return status;
}

static bel_status *write_overview(const char *folder)
{
    bel_str page = {0};
    begin_page("belfry", "trains models with parameter servers, on one machine or many", &page);
    bel_str_puts(&page, ".B belfry\nVERB [flags]\n.SH VERBS\n");
    for (size_t i = 0; bel_verb_at(i) != NULL; i++) {
        const bel_verb *v = bel_verb_at(i);
        if (v->summary == NULL) continue;
        bel_str_puts(&page, ".TP\n\\fB");
        bel_options_manual_text(v->name, &page);
        bel_str_puts(&page, "\\fR ");
        bel_options_manual_text(v->arguments, &page);
        bel_str_puts(&page, "\n");
        bel_options_manual_text(v->summary, &page);
        bel_str_puts(&page, "\n");
    }
    bel_str_puts(&page, ".PP\nEach verb has a separate page, such as\n.BR belfry\\-train (1).\n"
                        ".SH EXIT STATUS\n");
    static const struct {
        const char *code, *meaning;
    } codes[] = {{"0", "done"},
                 {"1", "failed while running"},
                 {"2", "usage or configuration"},
                 {"3", "bad or missing data"},
                 {"130, 143", "ended by SIGINT or SIGTERM, after saving"}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        bel_str_printf(&page, ".TP\n.B %s\n%s\n", codes[i].code, codes[i].meaning);
    return write_page(folder, "belfry", &page);
}

bel_status *bel_verb_manual(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    size_t count;
    const char *const *words = bel_options_arguments(options, &count);
    if (count != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a folder for the pages, got %zu words",
                       count);
    }
    BEL_TRY(bel_dir_create(words[0]));
    for (size_t i = 0; bel_verb_at(i) != NULL; i++)
        if (bel_verb_at(i)->summary != NULL) BEL_TRY(write_verb(words[0], bel_verb_at(i)));
    return write_overview(words[0]);
}
