import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";

// Opens the store of the folder in argv, says the functions it knows, or why it cannot be opened, and closes it as clean.
// A second argument is the user that root becomes before: only now, so that the checkout may lie where that user has no access.
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
