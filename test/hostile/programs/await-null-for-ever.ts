// ends with: WF_SANDBOX_CPU_BUDGET
// within: 700 ms
export default async () => {
  for (;;) await null;
};
