/** Whether labels match a selector in the API's query form: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`. */
export function matchesLabels(selector: string, labels: Readonly<Record<string, string>>): boolean {
  return (selector.match(/(?:[^,(]|\([^)]*\))+/g) ?? []).every((term) => {
    const [, key = "", operator = "", list = ""] = /^\s*([^\s!=]+)\s+(in|notin)\s*\(([^)]*)\)\s*$/.exec(term) ?? [];
    if (operator !== "") {
      const value = labels[key];
      const listed = value !== undefined && list.split(",").some((each) => each.trim() === value);
      return listed === (operator === "in");
    }
    const [, name = "", sign = "", wanted = ""] = /^\s*([^\s!=]+)\s*(!=|==?)\s*(\S*)\s*$/.exec(term) ?? [];
    if (sign !== "") return (labels[name] === wanted) === (sign !== "!=");
    const bare = term.trim();
    return bare.startsWith("!") ? !(bare.slice(1).trim() in labels) : bare in labels;
  });
}

/** Whether an object matches a field selector: `metadata.name=a,status.phase!=Running`; `\` escapes `,`, `=` and itself. */
export function matchesFields(selector: string, object: object): boolean {
  return (selector.match(/(?:[^,\\]|\\.)+/gs) ?? []).every((term) => {
    const [, path = "", sign = "", wanted = ""] = /^\s*([^\s!=]+)(!=|==?)(.*)$/s.exec(term) ?? [];
    if (sign === "") return true;
    let value: unknown = object;
    for (const step of path.split(".")) value = (value as Record<string, unknown> | undefined)?.[step];
    return (String(value ?? "") === wanted.replace(/\\([\\,=])/g, "$1")) === (sign !== "!=");
  });
}
