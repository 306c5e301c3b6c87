import { type ErrorEntry, user } from "./entry.ts";

/** Errors of `watchfire backup` and `watchfire restore`. */
export const backupCodes = {
  WF_BACKUP_UNWRITTEN: user(
    "a backup cannot be written",
    "name a file in a folder that you may write and that has room for the whole store; nothing was changed",
  ),
  WF_BACKUP_UPLOAD: user(
    "a backup was not accepted by the server of its URL",
    "give a fresh URL that allows a PUT; a presigned URL expires",
  ),
  WF_BACKUP_UNREADABLE: user(
    "the file is not a backup of checkpoints, or is damaged",
    "name a file that `watchfire backup` wrote; the checkpoints were left as they are",
  ),
  WF_BACKUP_CHANGING: user(
    "the checkpoints were moved to another store while the backup read them",
    "run the backup again once the log says `checkpoints moved`",
  ),
  WF_RESTORE_RUNNING: user(
    "a runtime uses the checkpoints that would be replaced",
    "end every replica, for example with `kubectl scale --replicas=0`, then restore",
  ),
  WF_RESTORE_UNCOMPARED: user(
    "the checkpoints that would be replaced cannot be compared with the backup",
    "find out why, because they may be newer; to replace them nevertheless, add --yes",
  ),
  WF_RESTORE_NEWER: user(
    "the checkpoints that would be replaced are newer than the backup",
    "start the runtime without a restore: it loses nothing. To replace them nevertheless, add --yes: what has happened since the backup is delivered again, flagged `redelivered`",
  ),
} as const satisfies Record<string, ErrorEntry>;
