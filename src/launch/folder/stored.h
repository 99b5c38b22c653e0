// Model folder that is kept in an object store, by its URL. A job works in a folder of this host,
// as with any model folder. A thread of the process that locks it sends new files to the store and
// removes there the versions that retention removed here. So all that a model folder has exists in
// the store: checkpoints, best.json, exports, event files, the report, the journal.
//
// A reader of the store sees whole checkpoints only: manifest.json is the last file that is sent of
// its folder, and the first that is removed. A checkpoint is removed after a newer one is whole. No
// other files are removed from the store, as a cleaner of this host may have removed them here.
// Checkpoints that were never sent when another job had the folder are moved to FOLDER.unsent.
//
// One job owns the folder in the store by an object, job.lease, which its process renews. An owner
// that is killed loses it after BEL_LEASE_SECS by the store's clock. The process that starts again
// on the same host has it at once, and continues with the files of this host, which may be newer
// than the store's.
//
// The folder on this host is below belfry-folders-UID in $BELFRY_CACHE_DIR, or else in
// $XDG_CACHE_HOME/belfry or ~/.cache/belfry, or else among temporary files. The URL and the list of
// sent files are in FOLDER.store beside it. All processes of a host compute the same path.
#ifndef BELFRY_LAUNCH_FOLDER_STORED_H
#define BELFRY_LAUNCH_FOLDER_STORED_H

#include <stdbool.h>

#include "belfry/status.h"

#define BEL_LEASE_FILE "job.lease"
enum { BEL_LEASE_SECS = 60 };

// Writers of files of a folder, which they may send.
typedef enum bel_stored_writer {
    BEL_STORED_OWNER,     // all files
    BEL_STORED_EVALUATOR, // evaluator/ and evaluator_NAME/
    BEL_STORED_VERB,      // evaluate/, evaluate_NAME/ and export/STEP/
    BEL_STORED_EXPORTER   // all files of an export, which has no owner
} bel_stored_writer;

// Gets the path on this host for a model folder's URL; the folder itself need not exist. Free with
// bel_free.
// INVALID_ARGUMENT: the URL is malformed, or a web server's, which cannot be written.
bel_status *bel_stored_folder(const char *url, char **out_folder) BEL_MUST_USE;

// Gets a path on this host for files of a URL, of any scheme, that are only read; free with
// bel_free.
bel_status *bel_stored_place(const char *url, char **out_path) BEL_MUST_USE;

// True if a folder of this host is that of a URL.
bool bel_stored_is(const char *folder);

// Gets the URL of such a folder, for messages; NULL: it is no store's. Free with bel_free.
char *bel_stored_url(const char *folder);

// Makes this host's folder equal to the store's, for a process that only reads. It fetches the
// newest checkpoint, the best, and the one of the name `which` ("ckpt-00000100"; NULL: none), or
// all checkpoints (BEL_STORED_ALL). It does nothing if a process of this host owns the folder. If
// one owned it last, it only fetches files that are gone here: the others are at least as new.
#define BEL_STORED_ALL ""
bel_status *bel_stored_pull(const char *folder, const char *which) BEL_MUST_USE;

// Becomes the owner, makes this host's folder equal to the store's if another host owned it since,
// and starts the thread. Does nothing for a folder that is no store's. Call it under the folder's
// lock. FAILED_PRECONDITION: another process owns it. Errors of the store.
bel_status *bel_stored_own(const char *folder) BEL_MUST_USE;

// Sends the remaining files and gives up the ownership; OK if the folder is not owned here. Errors
// of the store: the folder on this host has everything, and the next run here sends it. ABORTED:
// another process took the ownership meanwhile.
bel_status *bel_stored_release(const char *folder) BEL_MUST_USE;

// For an evaluator that follows the checkpoints of any owner after a bel_stored_pull. It calls this
// every few seconds for a folder of a store. Unless a process of this host owns the folder, this
// sends the curves of evaluators, and makes the folder equal to the store's, as bel_stored_pull. If
// the store does not accept the curves, one warning says so. *out_trains: an owner trains now, on
// any host. It becomes false only when all that the last owner sent was fetched. UNAVAILABLE: the
// store does not answer. Other errors of the store and of files.
bel_status *bel_stored_follow(const char *folder, bool *out_trains) BEL_MUST_USE;

// Sends new and changed files of a folder that this process does not own, and only those that the
// writer may send. Removes nothing from the store. Does nothing for a folder that is no store's, or
// that a process of this host owns.
bel_status *bel_stored_add(const char *folder, bel_stored_writer writer) BEL_MUST_USE;

#endif
