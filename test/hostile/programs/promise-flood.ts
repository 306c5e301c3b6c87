// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET
// within: 4000 ms
export default async () => {
  const all: Promise<unknown>[] = [];
  for (;;) all.push(new Promise(() => {}));
};
