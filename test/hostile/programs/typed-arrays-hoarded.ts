// ends with: RangeError WF_SANDBOX_CPU_BUDGET WF_SANDBOX_MEMORY
// within: 4000 ms
export default () => {
  const pile: Uint8Array[] = [];
  for (;;) pile.push(new Uint8Array(1_000_000).fill(1));
};
