/// Errors. A function that can fail returns `bel_status *`: NULL is success; anything else is an
/// owned object with a code, a message and the places that it passed. The result must be used.
///
/// ```c
/// bel_status *status = bel_train_and_evaluate(estimator, &train, &eval, 1, &result);
/// if (status != NULL) return bel_status_report(status);
/// ```
///
/// Thread rule: a status belongs to one thread at a time; it may move to another.
///
/// Ownership: the function that receives a status owns it. It must end it with bel_status_destroy
/// or bel_status_ignore, wrap it, or return it to its caller. No function in this header fails.
#ifndef BELFRY_STATUS_H
#define BELFRY_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BEL_API __attribute__((visibility("default")))
#define BEL_MUST_USE __attribute__((warn_unused_result))
#define BEL_PRINTF(format_index, first_index)                                                      \
    __attribute__((format(printf, format_index, first_index)))

/// An error; opaque. Success is NULL, which every function here accepts.
typedef struct bel_status bel_status;

/// Kind of an error, in the numbering of gRPC. In brackets: the person that has to act.
typedef enum bel_code {
    BEL_OK = 0,
    BEL_CANCELLED = 1,           ///< Stopped on request [no one].
    BEL_UNKNOWN = 2,             ///< User code failed without saying why [author of the model].
    BEL_INVALID_ARGUMENT = 3,    ///< A flag, a setting or an argument is wrong [caller].
    BEL_DEADLINE_EXCEEDED = 4,   ///< A wait timed out; the message names the missing peer
                                 ///< [operator].
    BEL_NOT_FOUND = 5,           ///< A file, variable or checkpoint does not exist [caller].
    BEL_ALREADY_EXISTS = 6,      ///< Would overwrite something [caller].
    BEL_PERMISSION_DENIED = 7,   ///< The system refused access [operator].
    BEL_RESOURCE_EXHAUSTED = 8,  ///< Memory, disk or a limit is used up [operator].
    BEL_FAILED_PRECONDITION = 9, ///< Not in this state, e.g. resume with changed flags [caller].
    BEL_ABORTED = 10,            ///< Training diverged or a peer gave up [user].
    BEL_OUT_OF_RANGE = 11,       ///< An index or position beyond its end [caller].
    BEL_UNIMPLEMENTED = 12,      ///< Not supported in this build [caller].
    BEL_INTERNAL = 13,           ///< A broken invariant: a defect of Belfry [us].
    BEL_UNAVAILABLE = 14,        ///< A peer cannot be reached; trying again may help [operator].
    BEL_DATA_LOSS = 15,          ///< Input data or a checkpoint is malformed [owner of the data].
    BEL_UNAUTHENTICATED = 16,    ///< Wrong or missing secret [operator].
} bel_code;

/// Makes a status with a message from a printf format. Use BEL_ERR, which fills in the place.
/// `code` is not BEL_OK. Texts are copied; a word of more than 256 bytes keeps its beginning and
/// end, with "…" between them. Never NULL: without memory the result is a static object of code
/// RESOURCE_EXHAUSTED, which is destroyed like any other.
BEL_API bel_status *bel_status_create(bel_code code, const char *file, int line, const char *format,
                                      ...) BEL_PRINTF(4, 5) BEL_MUST_USE;

/// Prepends context to the message, "context: message", and appends the place to the trace; the
/// code stays. Takes ownership of `status` and returns it, owned by the caller; NULL for NULL.
/// Without memory the status stays as it was.
BEL_API bel_status *bel_status_wrap(bel_status *status, const char *file, int line,
                                    const char *format, ...) BEL_PRINTF(4, 5) BEL_MUST_USE;

/// Returns the code; BEL_OK for NULL.
BEL_API bel_code bel_status_code(const bel_status *status);

/// Returns the name of a code, e.g. "DATA_LOSS"; "UNKNOWN" for an invalid code. Static.
BEL_API const char *bel_code_name(bel_code code);

/// Returns the message: one line without a newline, context first. Lives as long as the status.
/// "ok" for NULL.
BEL_API const char *bel_status_message(const bel_status *status);

/// Returns the places where the status was made and wrapped, a "file:line" each, separated by " <
/// ", the origin first. Lives as long as the status. "" for NULL.
BEL_API const char *bel_status_trace(const bel_status *status);

/// Returns the exit code for a process that ends with this status, as Belfry's command does
/// (docs/command.md). 0: NULL. 2, wrong flag or setting: INVALID_ARGUMENT, FAILED_PRECONDITION and
/// UNIMPLEMENTED. 3, bad or missing data: NOT_FOUND and DATA_LOSS. 1: any other.
BEL_API int bel_status_exit_code(const bel_status *status);

/// Reports a status that ends the program: writes the line `belfry: message` to stderr, or with
/// BELFRY_LOG_FORMAT=json an object for a supervisor. Frees the status and returns its exit code.
/// NULL: 0, and nothing is written.
BEL_API int bel_status_report(bel_status *status) BEL_MUST_USE;

/// Frees a status; accepts NULL.
BEL_API void bel_status_destroy(bel_status *status);

/// Drops an error on purpose: frees it like bel_status_destroy, and tells readers of the code that
/// this is intended. Write the reason beside the call.
BEL_API void bel_status_ignore(bel_status *status);

/// Calls bel_status_create with this file and line:
/// `return BEL_ERR(BEL_NOT_FOUND, "no variable \"%s\"", name);`
#define BEL_ERR(code, ...) bel_status_create((code), __FILE__, __LINE__, __VA_ARGS__)

/// Evaluates `expression` once and, if it fails, returns its status from the calling function,
/// which must return `bel_status *`. The caller frees earlier resources elsewhere.
#define BEL_TRY(expression)                                                                        \
    do {                                                                                           \
        bel_status *bel_try_status_ = (expression);                                                \
        if (bel_try_status_ != NULL) return bel_try_status_;                                       \
    } while (0)

/// Like BEL_TRY, with context added by bel_status_wrap:
/// `BEL_TRY_CTX(read(f), "checkpoint %s", path);`
#define BEL_TRY_CTX(expression, ...)                                                               \
    do {                                                                                           \
        bel_status *bel_try_status_ = (expression);                                                \
        if (bel_try_status_ != NULL)                                                               \
            return bel_status_wrap(bel_try_status_, __FILE__, __LINE__, __VA_ARGS__);              \
    } while (0)

/// Stores the result, NULL or an error, in `variable`, and jumps to `label` if it is an error. For
/// functions that have to undo something.
#define BEL_TRY_GOTO(variable, label, expression)                                                  \
    do {                                                                                           \
        (variable) = (expression);                                                                 \
        if ((variable) != NULL) goto label;                                                        \
    } while (0)

/// --- Log ----------------------------------------------------------------------------------------

/// Levels of the log's lines on stderr. A level includes those before it.
typedef enum bel_log_level {
    BEL_LOG_ERROR,
    BEL_LOG_WARN,
    BEL_LOG_INFO,
    BEL_LOG_DEBUG
} bel_log_level;

/// Sets the level up to which lines are written, for the entire process, and returns the one
/// before. It begins as INFO. Any thread may call it.
BEL_API bel_log_level bel_log_set_level(bel_log_level level);

#ifdef __cplusplus
}
#endif

#endif
