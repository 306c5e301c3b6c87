import type { ChangeType } from "../../manifest/function.ts";
import type { Change } from "../scan/change.ts";
import type { AskedField, Interest, Passed, PassedCounter, Subscriber } from "./subscriber.ts";

type Counts = Record<ChangeType, number>;

const none = (): Counts => ({ Added: 0, Modified: 0, Deleted: 0 });

/**
 * Subscribers that a change passes by without a call, unless it has what they ask for. To call each of a hundred costs 80 ns a
 * subscriber and change (measured by profile, 2026-11-25).
 */
export class SkipIndex {
  private readonly groups = new Map<AskedField, Group>();
  private readonly places = new Map<Subscriber, Bystander>();
  /** Those who were told of a change since `forgetTold`. */
  private readonly told = new Set<Subscriber>();

  has(subscriber: Subscriber): boolean {
    return this.places.has(subscriber);
  }

  /** From the next change on. */
  add(subscriber: Subscriber, interest: Interest): void {
    const group = this.groups.get(interest.field) ?? new Group(interest.field);
    this.groups.set(interest.field, group);
    const bystander = group.add(subscriber, interest);
    this.places.set(subscriber, bystander);
    // It was told of the change with which it begins to stand by.
    this.told.add(subscriber);
    subscriber.passedBy?.(bystander);
  }

  /** It is no bystander any more. What has passed it is still to be taken. */
  delete(subscriber: Subscriber): void {
    const bystander = this.places.get(subscriber);
    if (!bystander) return;
    this.places.delete(subscriber);
    this.told.delete(subscriber);
    const { field } = bystander.interest;
    const group = this.groups.get(field);
    group?.delete(bystander);
    if (group?.isEmpty) this.groups.delete(field);
  }

  /** None is a bystander any more. */
  clear(): void {
    for (const bystander of this.places.values()) bystander.end();
    this.places.clear();
    this.groups.clear();
    this.told.clear();
  }

  change(change: Change): void {
    for (const group of this.groups.values()) group.change(change, this.told);
  }

  /** Those who were told of a change since `forgetTold`: what has passed the others fills nobody's queue. */
  get toldLately(): Iterable<Subscriber> {
    return this.told;
  }

  forgetTold(): void {
    this.told.clear();
  }
}

/** Those who ask for values of one field. */
class Group {
  /** Changes that this group has seen. */
  readonly seen = none();
  /** The last one. */
  last: Pick<Change, "type" | "meta"> | undefined;
  private readonly all = new Set<Bystander>();
  private readonly byValue = new Map<string, Set<Bystander>>();
  private readonly byToken = new Map<object, Bystander>();
  /** Those whom nothing has passed since they took up what had. */
  private settled: Bystander[] = [];
  private turn = 0;
  private readonly field: AskedField;

  constructor(field: AskedField) {
    this.field = field;
  }

  get isEmpty(): boolean {
    return this.all.size === 0;
  }

  add(subscriber: Subscriber, interest: Interest): Bystander {
    const bystander = new Bystander(this, subscriber, interest);
    this.all.add(bystander);
    const alike = this.byValue.get(interest.value);
    if (alike) alike.add(bystander);
    else this.byValue.set(interest.value, new Set([bystander]));
    this.byToken.set(interest.token, bystander);
    this.settled.push(bystander);
    return bystander;
  }

  delete(bystander: Bystander): void {
    const { value, token } = bystander.interest;
    this.all.delete(bystander);
    const alike = this.byValue.get(value);
    if (alike?.delete(bystander) && alike.size === 0) this.byValue.delete(value);
    this.byToken.delete(token);
    bystander.end();
  }

  /** Notes that nothing has passed it since now. */
  settles(bystander: Bystander): void {
    this.settled.push(bystander);
  }

  /** @param lately takes those who are told */
  change(change: Change, lately: Set<Subscriber>): void {
    const told = this.concerned(change);
    for (const { subscriber } of told) {
      lately.add(subscriber);
      subscriber.change(change);
    }
    // Whoever is told takes up first what has passed it. So this change is noted last.
    this.turn++;
    this.seen[change.type]++;
    // Its body would keep a chunk of the socket's memory alive.
    this.last = { type: change.type, meta: change.meta };
    for (const each of told) each.told(change.type, this.turn);
    if (this.settled.length === 0) return;
    const waiting = this.settled;
    this.settled = waiting.filter(({ toldIn }) => toldIn === this.turn);
    for (const each of waiting) if (each.toldIn !== this.turn) each.passes();
  }

  /** Who has to hear of it: whoever asks for what it has, and whoever knows its object. A list of its own: they may leave meanwhile. */
  private concerned(change: Change): readonly Bystander[] {
    const value = this.field.read(change);
    if (value === undefined) return [...this.all];
    const told = [...(this.byValue.get(value) ?? [])];
    for (const token of this.field.knowing(change)) {
      const bystander = this.byToken.get(token);
      if (bystander && bystander.interest.value !== value) told.push(bystander);
    }
    return told;
  }
}

/** One of a group, and what has passed it. */
class Bystander implements PassedCounter {
  readonly subscriber: Subscriber;
  readonly interest: Interest;
  /** The group's turn in which it was told last. */
  toldIn = 0;
  /** Of what its group has seen: what it was told of, or has taken up. */
  private spared: Counts;
  private group: Group | undefined;
  /** What it is still to take up of a group that it has left. */
  private rest: Passed | undefined;
  private isSettled = true;

  constructor(group: Group, subscriber: Subscriber, interest: Interest) {
    this.group = group;
    this.subscriber = subscriber;
    this.interest = interest;
    this.spared = { ...group.seen };
  }

  take(): Passed | undefined {
    const { group, rest } = this;
    if (!group) {
      this.rest = undefined;
      return rest;
    }
    const passed = this.passedIn(group);
    if (!passed) return undefined;
    this.spared = { ...group.seen };
    if (!this.isSettled) group.settles(this);
    this.isSettled = true;
    return passed;
  }

  end(): void {
    const { group } = this;
    if (!group) return;
    this.rest = this.passedIn(group);
    this.group = undefined;
  }

  /** It was told of a change. */
  told(type: ChangeType, turn: number): void {
    this.spared[type]++;
    this.toldIn = turn;
  }

  /** The first change since it took up what had passed. */
  passes(): void {
    this.isSettled = false;
    if (this.group) this.subscriber.passes?.();
  }

  private passedIn({ seen, last }: Group): Passed | undefined {
    const { spared } = this;
    const counts = none();
    let sum = 0;
    for (const type of ["Added", "Modified", "Deleted"] as const) {
      counts[type] = seen[type] - spared[type];
      sum += counts[type];
    }
    return sum > 0 && last ? { counts, last } : undefined;
  }
}
