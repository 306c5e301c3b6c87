// Creates garbage, some of which survives, first without growth of the young space and then with V8's own. Prints the space's
// megabytes each time.
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { youngGrowth } from "../../runtime/v8/garbage.ts";

const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? 0;

function churn(utilization: number): number {
  let kept: object[] = [];
  for (let made = 0; made < 300_000; made++) {
    if (made % 100 === 0) setFlagsFromString(`--semi-space-growth-factor=${youngGrowth(size(), utilization)}`);
    kept.push({ some: new Array(50).fill(made) });
    if (kept.length > 4_000) kept = kept.slice(2_000);
  }
  return Math.round(size() / 1e6);
}

process.stdout.write(`${churn(0)} ${churn(1)}\n`);
