// ends with: WF_SANDBOX_CPU_BUDGET WF_SANDBOX_MEMORY WF_SANDBOX_KILLED
// within: 4000 ms
export default () => {
  const pile: unknown[] = [];
  for (;;) pile.push(new WeakRef({}));
};
