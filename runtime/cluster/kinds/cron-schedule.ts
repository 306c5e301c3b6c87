/** The fields of a schedule, in order: smallest and largest value, and names that stand for values from `first` on. */
const fields = [
  { least: 0, most: 59 },
  { least: 0, most: 23 },
  { least: 1, most: 31 },
  { least: 1, most: 12, first: 1, names: "jan feb mar apr may jun jul aug sep oct nov dec".split(" ") },
  { least: 0, most: 6, first: 0, names: "sun mon tue wed thu fri sat".split(" ") },
] as const;

type Field = (typeof fields)[number];

const descriptors = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/** Returns what is wrong with the schedule of a CronJob, in the words of the real server's parser; undefined if it is right. */
export function scheduleFault(schedule: string): string | undefined {
  if (/^@every \S+$/.test(schedule) || descriptors.includes(schedule)) return undefined;
  if (/^(?:CRON_)?TZ=/.test(schedule)) return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
  if (schedule.startsWith("@")) return `unrecognized descriptor: ${schedule}`;
  const parts = schedule.split(/\s+/).filter((part) => part !== "");
  if (parts.length !== fields.length) {
    return `expected exactly ${fields.length} fields, found ${parts.length}: [${parts.join(" ")}]`;
  }
  for (const [index, field] of fields.entries()) {
    for (const range of (parts[index] ?? "").split(",")) {
      const wrong = rangeFault(range, field);
      if (wrong !== undefined) return wrong;
    }
  }
  return undefined;
}

function rangeFault(range: string, field: Field): string | undefined {
  const [span = "", step, ...moreSteps] = range.split("/");
  if (moreSteps.length > 0) return `too many slashes: ${range}`;
  const [from = "", to, ...moreEnds] = span.split("-");
  if (moreEnds.length > 0) return `too many hyphens: ${range}`;
  const isAny = from === "*" || from === "?";
  const ends = isAny
    ? [field.least, field.most]
    : [from, ...(to === undefined ? [] : [to])].map((each) => numberOf(each, field));
  const wrong = ends.find((end) => typeof end === "string");
  if (typeof wrong === "string") return wrong;
  const [start = 0, end = step === undefined ? start : field.most] = ends as number[];
  const stride = step === undefined ? 1 : numberOf(step, field);
  if (typeof stride === "string") return stride;
  if (start < field.least) return `beginning of range (${start}) below minimum (${field.least}): ${range}`;
  if (end > field.most) return `end of range (${end}) above maximum (${field.most}): ${range}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`;
  return stride === 0 ? `step of range should be a positive number: ${range}` : undefined;
}

/** The value that a text names, or what is wrong with it. */
function numberOf(text: string, field: Field): number | string {
  const named = "names" in field ? (field.names as readonly string[]).indexOf(text.toLowerCase()) : -1;
  if (named >= 0 && "first" in field) return named + field.first;
  if (/^\d+$/.test(text)) return Number(text);
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
}
