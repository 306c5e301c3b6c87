/** What a person types to see a dead letter, or to replay it. `id` is as commands take it. */
export type DeadLetterCommand = (action: "show" | "replay", id: string) => string;
