// Imported into a measured process: keeps no history of runs, so that its cost is visible.
process.argv.push("--history-size", "0");
