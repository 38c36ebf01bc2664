import type { Task } from '../../base/core/environment.ts'
import type { Group, Scored, Unscored } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'

/** A group that attempts at one task are gathered in. */
export interface OpenGroup {
  readonly id: GroupId
  readonly task: Task
  /** Its place in the run's order. */
  readonly order: number
  /** Attempts that were opened. */
  members: number
  /** Member numbers of attempts that were cut when an earlier gateway stopped; new attempts take them. */
  readonly free: number[]
  /** Attempts that are not over. */
  running: number
  readonly ended: (Scored | Unscored)[]
  /** Whether it takes no more attempts. */
  isFull: boolean
}

/** What a group becomes when its last attempt is over. */
export type Complete = (group: OpenGroup) => Promise<Group>

/**
 * Gathers attempts by task. A group takes a fixed number of attempts and is complete when all have
 * ended; further attempts at the task begin the next group. A smaller group is completed by `close`.
 */
export class Groups {
  /** By task, oldest first: a gateway that was killed may have left several. */
  readonly #open = new Map<TaskId, Set<OpenGroup>>()
  /** The ids of all groups there were: a task may be called what another one's later group is. */
  readonly #taken: Set<GroupId>
  /** How many ids of each task are taken for sure. */
  readonly #rounds = new Map<TaskId, number>()
  readonly #size: number
  readonly #complete: Complete
  #order = 0
  /** Groups that were written. */
  finished = 0

  /** Groups that were `finished` before are not begun again. */
  constructor(size: number, complete: Complete, finished: ReadonlySet<GroupId> = new Set()) {
    this.#size = size
    this.#complete = complete
    this.#order = finished.size
    this.#taken = new Set(finished)
  }

  /** Takes over a group of which these members had ended, and others were cut, when its gateway stopped. */
  async adopt(
    id: GroupId,
    task: Task,
    ended: readonly { readonly member: number; readonly scored: readonly (Scored | Unscored)[] }[],
  ): Promise<Group | undefined> {
    const group = this.#begin(task, id)
    const there = new Set(ended.map(({ member }) => member))
    group.members = Math.max(...there) + 1
    for (let member = 0; member < group.members; member++) {
      if (!there.has(member)) group.free.push(member)
    }
    group.ended.push(...ended.flatMap(({ scored }) => scored))
    this.#fillWhereWhole(group)
    return await this.#completeWhereOver(group)
  }

  /** A place for an attempt: its group, and the number it has there. */
  join(task: Task): { readonly group: OpenGroup; readonly member: number } {
    const [group = this.#begin(task)] = this.#open.get(task.id) ?? []
    const member = group.free.shift() ?? group.members++
    group.running++
    this.#fillWhereWhole(group)
    return { group, member }
  }

  /** Records that an attempt has ended; returns the group if it was the last. */
  async leave(
    group: OpenGroup,
    members: readonly (Scored | Unscored)[],
  ): Promise<Group | undefined> {
    group.running--
    group.ended.push(...members)
    return await this.#completeWhereOver(group)
  }

  /** Takes no more attempts at a task into its groups; gives those of which none are running. */
  async close(task: TaskId): Promise<readonly Group[]> {
    const groups = [...(this.#open.get(task) ?? [])]
    for (const group of groups) this.#fill(group)
    const complete = await Promise.all(groups.map(group => this.#completeWhereOver(group)))
    return complete.filter(group => group !== undefined)
  }

  async closeAll(): Promise<void> {
    for (const task of [...this.#open.keys()]) await this.close(task)
  }

  /** Groups that still take attempts. */
  get open(): readonly OpenGroup[] {
    return [...this.#open.values()].flatMap(groups => [...groups])
  }

  #begin(task: Task, id: GroupId = this.#nextId(task)): OpenGroup {
    this.#taken.add(id)
    const group: OpenGroup = {
      id,
      task,
      order: this.#order++,
      members: 0,
      free: [],
      running: 0,
      ended: [],
      isFull: false,
    }
    this.#open.set(task.id, (this.#open.get(task.id) ?? new Set()).add(group))
    return group
  }

  /** A task's first group has its name, later ones a number behind it. */
  #nextId({ id: task }: Task): GroupId {
    let round = this.#rounds.get(task) ?? 1
    const idOf = (): GroupId => (round === 1 ? task : `${task}~${round}`) as string as GroupId
    while (this.#taken.has(idOf())) round++
    this.#rounds.set(task, round)
    return idOf()
  }

  #fillWhereWhole(group: OpenGroup): void {
    if (group.members >= this.#size && group.free.length === 0) this.#fill(group)
  }

  #fill(group: OpenGroup): void {
    group.isFull = true
    const groups = this.#open.get(group.task.id)
    groups?.delete(group)
    if (groups?.size === 0) this.#open.delete(group.task.id)
  }

  async #completeWhereOver(group: OpenGroup): Promise<Group | undefined> {
    if (!group.isFull || group.running > 0 || group.ended.length === 0) return undefined
    const complete = await this.#complete(group)
    this.finished++
    return complete
  }
}
