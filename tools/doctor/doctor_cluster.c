// `belfry doctor --cluster FILE`: checks whether a job of this file can run. The order is the file,
// the names of its hosts, this host's machine and limits, the files of `security`, and then all
// other hosts in parallel, by ssh (doctor_peers.h).
//
// A line about a host begins with its name. A host that does not resolve or answer gets one line,
// and checks that need it are omitted. A condition that prevents a job fails; one that may disturb
// it, or that it works around, is a warning. As a job does, a file written here and looked for on
// the other hosts shows whether all see one model_dir.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/file.h"
#include "base/linux_hosts.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/program.h"
#include "base/secret.h"
#include "base/str.h"
#include "base/thread.h"
#include "belfry/estimator.h"
#include "doctor/certificate.h"
#include "doctor/doctor.h"
#include "doctor/doctor_peers.h"
#include "launch/cluster/plan.h"

#define OK BEL_DOCTOR_OK
#define WARN BEL_DOCTOR_WARN
#define FAIL BEL_DOCTOR_FAIL

enum { NAMES_TIMEOUT_MS = 10000 };

// One host of the file.
typedef struct host {
    const char *destination; // as written in the file: "user@b"
    char *name;              // without user and brackets; "": this host without a name
    const char *role;        // its first role
    bel_linux_host found;
    bool is_here;
    int process_count;
    int cores;            // largest count in the machine types of its roles; 0: unknown
    int64_t memory_bytes; // the same
} host;

typedef struct checkup {
    bel_doctor *doctor;
    bel_cluster *cluster;
    bel_plan *plan;
    host *hosts;
    size_t host_count, host_capacity;
    char *folder; // absolute path of --model_dir; NULL without it
    char *mark;   // temporary file in it; NULL: the folder is not here
} checkup;

BEL_PRINTF(5, 6)
static void checkup_say(const checkup *c, bel_doctor_level level, const char *name, const char *fix,
                        const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    bel_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bel_doctor_report(c->doctor, level, name, text, fix);
}

// Reports an error status as a failure and frees it; returns true without an error.
static bool passes(const checkup *c, const char *name, const char *fix, bel_status *status)
{
    if (status == NULL) return true;
    checkup_say(c, FAIL, name, fix, "%s", bel_status_message(status));
    bel_status_destroy(status);
    return false;
}

// --- The file and its hosts ---------------------------------------------------------------------

static host *host_of(checkup *c, const char *destination)
{
    for (size_t i = 0; i < c->host_count; i++)
        if (strcmp(c->hosts[i].destination, destination) == 0) return &c->hosts[i];
    c->hosts = bel_xgrow(c->hosts, &c->host_capacity, c->host_count + 1, sizeof *c->hosts);
    host *h = &c->hosts[c->host_count++];
    const char *at = strrchr(destination, '@');
    const char *name = at != NULL ? at + 1 : destination;
    size_t length = strlen(name);
    bool brackets = length > 2 && name[0] == '[' && name[length - 1] == ']';
    *h = (host){.destination = destination,
                .name = brackets ? bel_xstrndup(name + 1, length - 2) : bel_xstrdup(name)};
    return h;
}

static void collect_hosts(checkup *c)
{
    for (int i = 0; i < c->plan->process_count; i++) {
        const bel_plan_process *process = &c->plan->processes[i];
        host *h = host_of(c, process->host != NULL ? process->host : "");
        const bel_cluster_machine *machine = &c->cluster->roles[process->role].machine;
        if (h->process_count++ == 0) h->role = bel_role_name(process->role);
        if (machine->cores > h->cores) h->cores = machine->cores;
        if (machine->memory_bytes > h->memory_bytes) h->memory_bytes = machine->memory_bytes;
    }
}

static void check_file(const checkup *c)
{
    const bel_cluster_role *roles = c->cluster->roles;
    size_t named = 0;
    for (size_t i = 0; i < c->host_count; i++)
        named += c->hosts[i].destination[0] != '\0';
    char *hosts = named == 0              ? bel_xstrdup("this host")
                  : named < c->host_count ? bel_strf("this host and %zu more", named)
                                          : bel_strf("%zu host%s", named, named == 1 ? "" : "s");
    checkup_say(c, OK, "cluster", NULL, "%s: a master, %d worker%s, %d parameter server%s%s on %s",
                c->cluster->source, roles[BEL_ROLE_WORKER].count,
                roles[BEL_ROLE_WORKER].count == 1 ? "" : "s", roles[BEL_ROLE_PS].count,
                roles[BEL_ROLE_PS].count == 1 ? "" : "s",
                roles[BEL_ROLE_EVALUATOR].count > 0 ? ", an evaluator" : "", hosts);
    bel_free(hosts);
}

// Resolves all names in parallel. Sets is_here.
static void look_up(checkup *c)
{
    bel_linux_host *found = bel_xcalloc(c->host_count, sizeof *found);
    for (size_t i = 0; i < c->host_count; i++)
        found[i].name = c->hosts[i].name[0] != '\0' ? c->hosts[i].name : "localhost";
    bel_linux_hosts_find(found, c->host_count, NAMES_TIMEOUT_MS);
    for (size_t i = 0; i < c->host_count; i++) {
        c->hosts[i].found = found[i];
        c->hosts[i].is_here = c->hosts[i].name[0] == '\0' || found[i].is_here;
    }
    bel_free(found);
}

static bool has_others(const checkup *c)
{
    for (size_t i = 0; i < c->host_count; i++)
        if (!c->hosts[i].is_here) return true;
    return false;
}

static void check_names(const checkup *c)
{
    static const char correct[] =
        "correct the name in the file, or add it to the name service or to /etc/hosts";
    bool here = false;
    for (size_t i = 0; i < c->host_count; i++) {
        const host *h = &c->hosts[i];
        here = here || h->is_here;
        if (h->name[0] == '\0') continue; // not named in the file
        if (h->found.address[0] == '\0') {
            checkup_say(c, FAIL, "host", correct, "%s, of a %s, does not resolve: %s", h->name,
                        h->role, h->found.problem);
        } else if (h->is_here && h->found.is_loopback && has_others(c)) {
            checkup_say(c, WARN, "host", "give it the address by which the others call it",
                        "%s is this host, but as %s, by which no other host reaches it", h->name,
                        h->found.address);
        } else if (h->is_here) {
            checkup_say(c, OK, "host", NULL, "%s is this host, %s", h->name, h->found.address);
        } else {
            checkup_say(c, OK, "host", NULL, "%s is %s", h->name, h->found.address);
        }
    }
    if (here) return;
    checkup_say(c, WARN, "host", "run doctor on a host of the job, or name this one in the file",
                "no host of the file is this one");
}

// --- This host ----------------------------------------------------------------------------------

static void check_machine(const checkup *c, const char *where, const host *h, int cores,
                          uint64_t memory_bytes)
{
    static const char share[] =
        "lower what the machine type says, or give its processes to other hosts";
    char there[32], said[32];
    bool few = cores < h->cores;
    if (h->cores > 0) {
        checkup_say(c, few ? WARN : OK, "machine", few ? share : NULL,
                    "%s has %d core%s, its machine type says %d", where, cores,
                    cores == 1 ? "" : "s", h->cores);
    }
    bool little = memory_bytes + memory_bytes / 16 < (uint64_t)h->memory_bytes; // the kernel's part
    if (h->memory_bytes > 0) {
        checkup_say(c, little ? WARN : OK, "machine", little ? share : NULL,
                    "%s has %s of memory, its machine type says %s", where,
                    bel_bytes_text(memory_bytes, there),
                    bel_bytes_text((uint64_t)h->memory_bytes, said));
    }
}

static void check_machines_here(const checkup *c)
{
    uint64_t memory = 0, limit = bel_cgroup_memory_limit("");
    if (!bel_doctor_memory(&memory)) return; // doctor.c has reported it
    for (size_t i = 0; i < c->host_count; i++) {
        const host *h = &c->hosts[i];
        if (!h->is_here) continue;
        check_machine(c, h->name[0] != '\0' ? h->name : "this host", h, bel_available_cores(),
                      limit < memory ? limit : memory);
    }
}

// Processes raise their soft limit to the hard one. A supervisor has three pipes for each process,
// and a shard has sockets and shared memory for each worker. All of them also have other files.
static void check_limits(const checkup *c)
{
    enum { OWN = 64, EACH = 8 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    unsigned long long need = OWN + EACH * (unsigned long long)c->plan->process_count;
    bool little = limit.rlim_max != RLIM_INFINITY && limit.rlim_max < need;
    char hint[128];
    bel_snprintf(hint, sizeof hint,
                 "ulimit -n %llu, as root, or nofile in /etc/security/limits.conf", need);
    checkup_say(c, little ? WARN : OK, "limits", little ? hint : NULL,
                "a process may open %llu files; with %d processes it may need %llu",
                (unsigned long long)limit.rlim_max, c->plan->process_count, need);
}

// Binds the number of ports that a job with --tcp needs here.
static void check_ports(const checkup *c)
{
    enum { MOST = 64 };
    int descriptors[MOST], count = 0, port;
    int wanted = c->plan->process_count < MOST ? c->plan->process_count : MOST;
    bel_status *status = NULL;
    while (count < wanted && status == NULL) {
        status = bel_linux_keep_port(true, &port, &descriptors[count]);
        count += status == NULL;
    }
    for (int i = 0; i < count; i++)
        close(descriptors[i]);
    static const char hint[] = "ip link set lo up; or sysctl net.ipv4.ip_local_port_range";
    if (passes(c, "ports", hint, status))
        checkup_say(c, OK, "ports", NULL, "%d free ports on the loopback", count);
}

// Chooses the folder of sockets as the supervisor does (src/launch/supervise/supervisor_start.c).
static void check_sockets(const checkup *c)
{
    static const char longest[] = "/belfry-sockets-XXXXXX/evaluator-1023.shm";
    enum { MOST = sizeof((struct sockaddr_un *)0)->sun_path - 1 };
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (base == NULL || base[0] != '/') {
        checkup_say(c, OK, "sockets", NULL, "XDG_RUNTIME_DIR names no folder: sockets are in /tmp");
    } else if (strlen(base) + strlen(longest) > MOST) {
        checkup_say(
            c, WARN, "sockets", "let it name a folder with a short path, or none",
            "XDG_RUNTIME_DIR has %zu bytes, and addresses of unix sockets leave it %zu: they are "
            "in /tmp",
            strlen(base), MOST - strlen(longest));
    } else if (access(base, W_OK | X_OK) != 0) {
        checkup_say(c, WARN, "sockets", "create it, or unset XDG_RUNTIME_DIR",
                    "XDG_RUNTIME_DIR is %s, which cannot be written (%s): sockets are in /tmp",
                    base, strerror(errno));
    } else {
        checkup_say(c, OK, "sockets", NULL, "in %s", base);
    }
}

// --- Security -----------------------------------------------------------------------------------

static bel_status *check_secret_file(const char *path)
{
    char *secret;
    BEL_TRY(bel_secret_read(path, "secret_file", &secret));
    bel_free(secret);
    return NULL;
}

static void check_secret(const checkup *c)
{
    const char *path = c->cluster->secret_file;
    if (path == NULL) return;
    static const char hint[] = "(umask 077; openssl rand -hex 32 >FILE), the same on all hosts";
    if (passes(c, "secret", hint, check_secret_file(path)))
        checkup_say(c, OK, "secret", NULL, "%s is private, and long enough", path);
}

static const char renew[] = "belfry certs makes a new one where ca.key is";

// Checks the validity; returns true if it is valid, after a warning if it ends soon.
static bool check_validity(const checkup *c, const char *path, const bel_certificate *certificate,
                           bool *out_said)
{
    enum { SOON_DAYS = 7 };
    double days = bel_certificate_days_left(certificate);
    *out_said = true;
    if (days < 0) {
        checkup_say(c, FAIL, "tls", renew, "%s expired on %s", path,
                    bel_certificate_last_day(certificate));
    } else if (!bel_certificate_has_begun(certificate)) {
        checkup_say(c, FAIL, "tls", "set this host's clock, or wait", "%s is not valid yet", path);
    } else if (days < SOON_DAYS) {
        checkup_say(c, WARN, "tls", renew, "%s ends on %s, in %.1f days", path,
                    bel_certificate_last_day(certificate), days);
        return true;
    } else {
        *out_said = false;
        return true;
    }
    return false;
}

// Other hosts may have different certificates in a file of that name: only this host's names count.
static bool check_certificate_names(const checkup *c, const bel_certificate *certificate)
{
    bool good = true;
    for (size_t i = 0; i < c->host_count; i++) {
        const host *h = &c->hosts[i];
        if (!h->is_here || h->name[0] == '\0') continue;
        if (bel_certificate_names(certificate, h->name)) continue;
        good = false;
        checkup_say(c, FAIL, "tls", "belfry certs --hosts … makes one for all hosts of the job",
                    "%s does not name %s, which is this host", c->cluster->tls_certificate,
                    h->name);
    }
    return good;
}

static void check_tls_with(const checkup *c, const bel_certificate *certificate,
                           const bel_certificate *authority)
{
    const bel_cluster *cluster = c->cluster;
    bool said, authority_said;
    bool good = passes(c, "tls", "take the key that was made with this certificate",
                       bel_certificate_check_key(certificate, cluster->tls_key));
    good = passes(c, "tls", "take the ca.pem beside which the certificate was made",
                  bel_certificate_check_signed(certificate, cluster->tls_ca)) &&
           good;
    good = check_validity(c, cluster->tls_certificate, certificate, &said) && good;
    good = check_validity(c, cluster->tls_ca, authority, &authority_said) && good;
    good = check_certificate_names(c, certificate) && good;
    if (!good || said || authority_said) return;
    checkup_say(c, OK, "tls", NULL, "%s is good until %s, by the authority in %s",
                cluster->tls_certificate, bel_certificate_last_day(certificate), cluster->tls_ca);
}

static void check_tls(const checkup *c)
{
    const bel_cluster *cluster = c->cluster;
    if (cluster->tls_ca == NULL) {
        if (!has_others(c)) return;
        checkup_say(
            c, WARN, "tls", "belfry certs makes certificates",
            "without TLS the job's secret, parameters and gradients go from host to host in clear");
        return;
    }
    static const char hint[] = "belfry certs makes the three files";
    bel_certificate *certificate = NULL, *authority = NULL;
    bool good = passes(c, "tls", "chmod 600, and make another",
                       bel_private_file_check(cluster->tls_key, "tls.key"));
    good = passes(c, "tls", hint, bel_certificate_read(cluster->tls_ca, &authority)) && good;
    bool both =
        passes(c, "tls", hint, bel_certificate_read(cluster->tls_certificate, &certificate));
    if (good && both) check_tls_with(c, certificate, authority);
    bel_certificate_destroy(certificate);
    bel_certificate_destroy(authority);
}

// --- Other hosts --------------------------------------------------------------------------------

// Appends any text as one word of a shell.
static void put_quoted(bel_str *out, const char *text)
{
    bel_str_puts(out, "'");
    for (; *text != '\0'; text++)
        *text == '\'' ? bel_str_puts(out, "'\\''") : bel_str_append(out, text, 1);
    bel_str_puts(out, "'");
}

// Makes the script for other hosts, which runs in any /bin/sh.
static char *make_script(const checkup *c)
{
    bel_str text = {0};
    bel_str_puts(&text, "say() { echo \"" BEL_PEERS_WORD "$*\"; }\n"
                        "say time \"$(date +%s.%N)\"\n"
                        "say version \"$(belfry version 2>&1 | head -n 1)\"\n"
                        "say cores \"$(nproc)\"\n"
                        "say memory \"$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)\"\n"
                        "folder=");
    put_quoted(&text, c->folder != NULL ? c->folder : ".");
    bel_str_puts(&text, "\nmark=");
    put_quoted(&text, c->mark != NULL ? c->mark : "");
    bel_str_puts(&text, "\n"
                        "[ ! -d \"$folder\" ] || say folder there\n"
                        "[ ! -w \"$folder\" ] || say writable there\n"
                        "[ -z \"$mark\" ] || [ ! -e \"$mark\" ] || say mark there\n"
                        "until [ -d \"$folder\" ] || [ \"$folder\" = . ]; do\n"
                        "    folder=$(dirname \"$folder\")\n"
                        "done\n"
                        "say disk \"$(df -Pk \"$folder\" | awk 'END { print $4 }')\"\n"
                        "say end\n");
    return text.text;
}

static void check_clock(const checkup *c, const host *h, const bel_peer *peer)
{
    static const char hint[] = "let both hosts keep time: apt-get install chrony";
    char text[64];
    double there;
    if (!bel_peer_value(peer, "time", text, sizeof text)) return;
    size_t length = strspn(text, "0123456789.");
    if (length > 0 && text[length - 1] == '.') length--; // %N is unknown on that host: seconds only
    bool whole = memchr(text, '.', length) == NULL;
    if (!bel_parse_f64(text, length, &there)) {
        checkup_say(c, WARN, "clock", NULL, "%s does not say what time it is", h->name);
        return;
    }
    double ahead = there + (whole ? 0.5 : 0) - peer->heard_at, apart = ahead < 0 ? -ahead : ahead;
    bel_doctor_level level = apart > 60 ? FAIL : apart > 1 ? WARN : OK;
    checkup_say(c, level, "clock", level != OK ? hint : NULL, "%s is %.2f s %s this host", h->name,
                apart, ahead < 0 ? "behind" : "ahead of");
}

static void check_version(const checkup *c, const host *h, const bel_peer *peer)
{
    static const char begin[] = "belfry ";
    char line[200] = "", hint[160];
    (void)bel_peer_value(peer, "version", line, sizeof line); // empty: it printed nothing
    const char *there = strncmp(line, begin, strlen(begin)) == 0 ? line + strlen(begin) : NULL;
    bool good = there != NULL && strcmp(there, bel_version()) == 0;
    bel_snprintf(hint, sizeof hint, "install belfry %s there, in a folder of $PATH", bel_version());
    if (there == NULL) {
        checkup_say(c, FAIL, "version", hint, "%s runs no belfry: %s", h->name, line);
    } else {
        checkup_say(c, good ? OK : FAIL, "version", good ? NULL : hint,
                    "%s has belfry %s, this host %s", h->name, there, bel_version());
    }
}

static void check_machine_there(const checkup *c, const host *h, const bel_peer *peer)
{
    char cores[32], memory[32];
    int64_t core_count, kib;
    bool known = bel_peer_value(peer, "cores", cores, sizeof cores) &&
                 bel_peer_value(peer, "memory", memory, sizeof memory) &&
                 bel_parse_i64(cores, strlen(cores), &core_count) &&
                 bel_parse_i64(memory, strlen(memory), &kib) && core_count > 0 &&
                 core_count <= INT32_MAX && kib > 0 && kib <= INT64_MAX / 1024;
    if (known) check_machine(c, h->name, h, (int)core_count, (uint64_t)kib * 1024);
}

static void check_folder(const checkup *c, const host *h, const bel_peer *peer)
{
    if (c->folder == NULL) return;
    char text[16];
    bool there = bel_peer_value(peer, "folder", text, sizeof text);
    if (!there && c->mark == NULL) {
        checkup_say(c, WARN, "folder", "create it where all hosts see it, under one name",
                    "%s is neither here nor on %s", c->folder, h->name);
    } else if (!there) {
        checkup_say(c, FAIL, "folder", "all hosts need one model_dir: mount it there",
                    "%s has no %s", h->name, c->folder);
    } else if (c->mark == NULL) {
        checkup_say(c, FAIL, "folder", "all hosts need one model_dir: mount it here",
                    "%s is on %s, but not here", c->folder, h->name);
    } else if (!bel_peer_value(peer, "mark", text, sizeof text)) {
        checkup_say(c, FAIL, "folder",
                    "all hosts need one model_dir: mount this host's there, or its here",
                    "%s of %s is another folder: a file that was written here is not there",
                    c->folder, h->name);
    } else if (!bel_peer_value(peer, "writable", text, sizeof text)) {
        checkup_say(c, FAIL, "folder", "let the job's user write there", "%s cannot write into %s",
                    h->name, c->folder);
    } else {
        checkup_say(c, OK, "folder", NULL, "%s sees %s", h->name, c->folder);
    }
}

static void check_disk(const checkup *c, const host *h, const bel_peer *peer)
{
    enum { LITTLE_KIB = 1 << 20 };
    char text[32], bytes[32];
    int64_t kib;
    if (!bel_peer_value(peer, "disk", text, sizeof text)) return;
    if (!bel_parse_i64(text, strlen(text), &kib) || kib < 0 || kib > INT64_MAX / 1024) return;
    bool little = kib < LITTLE_KIB;
    checkup_say(c, little ? WARN : OK, "disk", little ? "make room for checkpoints" : NULL,
                "%s has %s free %s", h->name, bel_bytes_text((uint64_t)kib * 1024, bytes),
                c->folder != NULL ? "where the model's folder is" : "in the user's folder");
}

static void check_peer(const checkup *c, const host *h, const bel_peer *peer)
{
    char problem[160], hint[160];
    if (peer->code != 0 || peer->timed_out || !bel_peer_value(peer, "time", problem, 16)) {
        bel_snprintf(hint, sizeof hint,
                     "ssh %.64s true must end with 0 and ask for nothing: ssh-copy-id, known_hosts",
                     h->destination);
        checkup_say(c, FAIL, "ssh", hint, "%s does not answer: %s", h->name,
                    bel_peer_problem(peer, problem));
        return;
    }
    checkup_say(c, OK, "ssh", NULL, "%s answers after %.1f s", h->name, peer->answered_secs);
    check_clock(c, h, peer);
    check_version(c, h, peer);
    check_machine_there(c, h, peer);
    check_folder(c, h, peer);
    check_disk(c, h, peer);
}

static void ask_others(const checkup *c, const char *program)
{
    bel_peer *peers = bel_xcalloc(c->host_count, sizeof *peers);
    const host **hosts = bel_xcalloc(c->host_count, sizeof *hosts);
    size_t count = 0;
    for (size_t i = 0; i < c->host_count; i++) {
        const host *h = &c->hosts[i];
        if (h->is_here || h->found.address[0] == '\0') continue;
        peers[count].destination = h->destination;
        hosts[count++] = h;
    }
    char *script = make_script(c);
    bel_peers_ask(program, peers, count, script);
    for (size_t i = 0; i < count; i++) {
        check_peer(c, hosts[i], &peers[i]);
        bel_peer_deinit(&peers[i]);
    }
    bel_free(script);
    bel_free(hosts);
    bel_free(peers);
}

// Creates the mark, a file of this process, which the process removes.
static void set_mark(checkup *c)
{
    if (c->folder == NULL || !bel_dir_exists(c->folder)) return;
    char *name = bel_strf(".belfry-doctor-%ld-mark", (long)getpid());
    c->mark = bel_path_join(c->folder, name);
    bel_free(name);
    int descriptor = open(c->mark, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor >= 0) close(descriptor); // otherwise doctor.c has reported the folder
}

static void check_others(checkup *c)
{
    if (!has_others(c)) return;
    char *program;
    if (!passes(c, "ssh", "apt-get install openssh-client", bel_peers_program(&program))) return;
    set_mark(c);
    ask_others(c, program);
    if (c->mark != NULL) unlink(c->mark);
    bel_free(program);
}

// --- All ----------------------------------------------------------------------------------------

static void check_all(checkup *c)
{
    collect_hosts(c);
    look_up(c);
    check_file(c);
    check_names(c);
    check_machines_here(c);
    check_limits(c);
    check_ports(c);
    check_sockets(c);
    check_secret(c);
    check_tls(c);
    check_others(c);
}

void bel_doctor_check_cluster(bel_doctor *doctor, const char *path)
{
    checkup c = {.doctor = doctor};
    static const char manual[] = "docs/cluster-yaml.md has all keys";
    bool good = passes(&c, "cluster", manual, bel_cluster_read(path, &c.cluster)) &&
                passes(&c, "cluster", manual, bel_plan_create(c.cluster, 0, 0, &c.plan));
    if (doctor->model_dir != NULL) c.folder = bel_absolute_path(doctor->model_dir);
    if (good) check_all(&c);
    for (size_t i = 0; i < c.host_count; i++)
        bel_free(c.hosts[i].name);
    bel_free(c.hosts);
    bel_free(c.mark);
    bel_free(c.folder);
    bel_plan_destroy(c.plan);
    bel_cluster_destroy(c.cluster);
}
