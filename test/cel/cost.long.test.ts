import { expect, test } from "vitest";
import { compile } from "../../runtime/cel/compile.ts";
import { expressionLimit, LimitExceeded, Meter } from "../../runtime/cel/meter.ts";
import { pieceUnits } from "../../runtime/engine/filter/conditions.ts";
import { parseKey } from "../../runtime/engine/filter/expression.ts";

/** The simplest loop, whose time per unit is the measure. */
const plain = "object.text != 'z'";
/**
 * Allowed multiple of that time. More would let one expression block the event loop much longer than another with the same cost.
 */
const atMost = 6;
/** Nanoseconds of the simple loop's unit, and the maximum milliseconds of one piece of evaluation on such a core. */
const quickUnit = 1.65;
const mostPieceMs = 10;
/** Number of runs. The fastest counts, because the others contain other work of the machine. */
const runs = 5;

const list = Array.from({ length: 300 }, (_, index) => index);
const object = {
  text: "x".repeat(1000),
  list,
  big: list.map(BigInt),
  texts: list.map((each) => `text ${each}`),
  url: "https://a.example/b?c=d",
  quantity: "100Mi",
  time: "2024-01-01T00:00:00Z",
  duration: "1h",
};

/** Uses of each macro, and of each function whose time or result grows with its input. */
const expressions = `
object.list.all(x, x >= 0)
object.list.map(x, x).size() > 0
object.list.filter(x, x > 5).size() > 0
object.list.exists(x, x > 1000)
object.list.exists_one(x, x == 10)
object.list.transformList(i, x, x).size() > 0
lists.range(300).size() > 0
lists.range(10).size() > 0
[1, 2, 3].size() > 0
{'a': 1, 'b': 2}.size() > 0
299 in object.list
299 in object.big
object.list.indexOf(299) > 0
object.list.lastIndexOf(0) > 0
object.list == object.list
object.list == object.big
object.list.sort().size() > 0
object.list.sum() > 0
object.list.min() == 0
object.big.max() == 0
object.list.distinct().size() > 0
object.list.isSorted()
object.list.reverse().size() > 0
object.list.slice(0, 100).size() > 0
[object.list].flatten().size() > 0
(object.list + object.list).size() > 0
sets.contains(object.list, [1, 2])
sets.equivalent(object.list, object.list)
sets.intersects(object.list, [1000])
sets.intersects(object.big, [1000])
'%s'.format([object.list]) != ''
'%s'.format([object.texts]) != ''
'%d'.format([5]) != ''
'%e'.format([5.5]) != ''
object.text.replace('x', 'yy') != ''
object.text.split('').size() > 0
object.texts.join(',') != ''
object.text.lowerAscii() != ''
object.text.substring(1) != ''
object.text.indexOf('y') < 0
object.text.lastIndexOf('y') < 0
object.text.reverse().size() > 0
object.text.trim() != ''
strings.quote(object.text) != ''
object.text.contains('y')
object.text.startsWith('x')
(object.text + object.text) != ''
object.text == object.text
object.text.matches('x+y')
object.text.find('x+').size() > 0
base64.encode(bytes(object.text)) != ''
url(object.url).getHost() != ''
quantity(object.quantity).isGreaterThan(quantity('1'))
timestamp(object.time).getFullYear() > 0
timestamp(object.time).getHours('Europe/Berlin') >= 0
duration(object.duration).getHours() > 0
ip('10.0.0.1').family() == 4
cidr('10.0.0.0/8').containsIP('10.1.1.1')
semver('1.2.3').major() == 1
string(5) == '5'
double('5.5') > 0.0
int('55') > 0
`;

/** Nanoseconds of processor time per unit of cost, at an expression's limit. */
function perUnit(expression: string): number {
  const code = compile(parseKey(`object.texts.all(a, object.texts.all(b, (${expression}) || true)) ? 'a' : 'b'`));
  const once = () => {
    const meter = new Meter(expressionLimit);
    const began = process.cpuUsage();
    try {
      code({ meter, object, oldObject: () => null, slots: [] });
    } catch (error) {
      if (!(error instanceof LimitExceeded)) throw error;
    }
    const { user, system } = process.cpuUsage(began);
    return ((user + system) * 1000) / meter.used;
  };
  return Math.min(...Array.from({ length: runs }, once));
}

test("a unit of cost is a unit of time, whatever a condition does", () => {
  const unit = perUnit(plain);
  const all = expressions.split("\n").filter((line) => line !== "");
  const dear = all.map((each) => ({ each, times: perUnit(each) / unit })).filter(({ times }) => times > atMost);
  expect(dear).toEqual([]);
  // Converted to a core that runs the simple loop as fast as those of 2024, because a busy machine is slower.
  const quick = Math.min(1, quickUnit / unit);
  const longest = Math.max(...all.map((each) => perUnit(each) * quick * (pieceUnits + expressionLimit))) / 1e6;
  expect(longest).toBeLessThan(mostPieceMs);
}, 60_000);
