import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";

// Opens the store of the folder in argv, prints its functions or the error, and closes it cleanly. A second argument is the user
// that root switches to after loading, so that the checkout may be in a folder which that user cannot read.
const [, , folder = "", user] = process.argv;
if (user !== undefined) {
  process.setgroups?.([]);
  process.setgid?.(Number(user));
  process.setuid?.(Number(user));
}
try {
  const store = new Checkpoint(new SqliteJournal({ folder }));
  const views = await store.views();
  await store.close(true);
  process.stdout.write(JSON.stringify(views.map((view) => view.function)));
} catch (error) {
  process.stdout.write(error instanceof Error ? error.message : String(error));
}
