// ends with: WF_SANDBOX_CPU_BUDGET WF_SANDBOX_DEADLINE WF_SANDBOX_MEMORY WF_SANDBOX_KILLED ok
// within: 4000 ms
const registry = new FinalizationRegistry(() => {
  for (;;) Math.sqrt(2);
});
export default async () => {
  for (let turn = 0; turn < 20_000; turn++) registry.register({ turn }, turn);
  for (let turn = 0; turn < 20; turn++) {
    new Array(10_000).fill({});
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
};
