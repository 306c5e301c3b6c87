import { SqliteStore } from "../../runtime/checkpoint/sqlite.ts";

// Opens the store of the folder in argv, says the functions it knows, or why it cannot be opened, and closes it as clean.
try {
  const store = new SqliteStore({ folder: process.argv[2] ?? "" });
  const views = await store.views();
  await store.close(true);
  process.stdout.write(JSON.stringify(views.map((view) => view.function)));
} catch (error) {
  process.stdout.write(error instanceof Error ? error.message : String(error));
}
