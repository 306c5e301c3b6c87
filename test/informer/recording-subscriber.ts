import { type ResourceVersion, resourceVersionIn } from "../../runtime/base/resource-version.ts";
import type { ListReason, ListReceiver, Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { Waiters } from "../tools/waiters.ts";

/** Records everything that a source delivers, one line each: `Added a 5`, `bookmark 9`, `list initial from nowhere`. */
export class RecordingSubscriber implements Subscriber {
  readonly id: string;
  readonly log: string[] = [];
  readonly changes: Change[] = [];
  resumeFrom: ResourceVersion | undefined;
  congested: Promise<void> | undefined;
  /** Outcomes of the ends of the next lists; afterwards `counted`. */
  readonly outcomes: ("counted" | "held")[] = [];
  private readonly waiters = new Waiters();

  constructor(resumeFrom?: string, id = "recording") {
    this.id = id;
    this.resumeFrom = resourceVersionIn(resumeFrom);
  }

  change(change: Change): void {
    this.changes.push(change);
    this.resumeFrom = change.meta.resourceVersion;
    this.note(`${change.type} ${change.meta.name} ${change.meta.resourceVersion}`);
  }

  bookmark(resourceVersion: ResourceVersion): void {
    this.resumeFrom = resourceVersion;
    this.note(`bookmark ${resourceVersion}`);
  }

  list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver {
    this.note(`list ${reason} from ${gapFrom ?? "nowhere"}`);
    return {
      item: (change) => {
        this.changes.push(change);
        this.note(`item ${change.meta.name} ${change.meta.resourceVersion}`);
      },
      end: (resourceVersion) => {
        const outcome = this.outcomes.shift() ?? "counted";
        if (outcome === "counted") this.resumeFrom = resourceVersion;
        this.note(`end ${resourceVersion}${outcome === "held" ? " held" : ""}`);
        return outcome;
      },
      abort: () => this.note("abort"),
    };
  }

  /** Resolves once the log holds `line` `count` times. */
  async saw(line: string, count = 1): Promise<void> {
    const isThere = () => this.log.filter((entry) => entry === line).length >= count;
    await this.waiters.until(`"${line}", ${count} times`, isThere);
  }

  /** Clears the log. */
  forget(): void {
    this.log.length = 0;
  }

  protected note(line: string): void {
    this.log.push(line);
    this.waiters.wake();
  }
}
