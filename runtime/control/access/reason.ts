/** The header with the reason of a change, percent-encoded. */
export const reasonHeader = "watchfire-reason";

/** Most characters of a reason. */
export const reasonLimit = 500;
