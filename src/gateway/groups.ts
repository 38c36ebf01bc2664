import type { Task } from '../core/environment.ts'
import type { Group, Scored, Unscored } from '../core/group.ts'
import type { GroupId, TaskId } from '../core/ids.ts'

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
  readonly #open = new Map<TaskId, OpenGroup>()
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
    for (const id of finished) this.#countRound(id)
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
    const group = this.#open.get(task.id) ?? this.#begin(task)
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

  /** Takes no more attempts at a task into its group; gives the group where none are running. */
  async close(task: TaskId): Promise<Group | undefined> {
    const group = this.#open.get(task)
    if (!group) return undefined
    this.#fill(group)
    return await this.#completeWhereOver(group)
  }

  async closeAll(): Promise<void> {
    for (const task of [...this.#open.keys()]) await this.close(task)
  }

  /** Groups that still take attempts. */
  get open(): readonly OpenGroup[] {
    return [...this.#open.values()]
  }

  #begin(task: Task, id: GroupId = this.#nextId(task)): OpenGroup {
    this.#countRound(id)
    const group = {
      id,
      task,
      order: this.#order++,
      members: 0,
      free: [],
      running: 0,
      ended: [],
      isFull: false,
    }
    this.#open.set(task.id, group)
    return group
  }

  /** A task's first group has its name, later ones a number behind it. */
  #nextId({ id }: Task): GroupId {
    const round = (this.#rounds.get(id) ?? 0) + 1
    return (round === 1 ? id : `${id}~${round}`) as string as GroupId
  }

  #countRound(id: GroupId): void {
    const [, task = id, round = '1'] = /^(.*)~(\d+)$/.exec(id) ?? []
    const known = this.#rounds.get(task as TaskId) ?? 0
    this.#rounds.set(task as TaskId, Math.max(known, Number(round)))
  }

  #fillWhereWhole(group: OpenGroup): void {
    if (group.members >= this.#size && group.free.length === 0) this.#fill(group)
  }

  #fill(group: OpenGroup): void {
    group.isFull = true
    if (this.#open.get(group.task.id) === group) this.#open.delete(group.task.id)
  }

  async #completeWhereOver(group: OpenGroup): Promise<Group | undefined> {
    if (!group.isFull || group.running > 0 || group.ended.length === 0) return undefined
    const complete = await this.#complete(group)
    this.finished++
    return complete
  }
}
