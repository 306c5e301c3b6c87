/** Builds the command line that shows or replays a dead letter. `id` is in the form that commands accept. */
export type DeadLetterCommand = (action: "show" | "replay", id: string) => string;
