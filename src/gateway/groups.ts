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
  /** Attempts that are not over. */
  running: number
  readonly ended: (Scored | Unscored)[]
  /** Whether it takes no more attempts. */
  isFull: boolean
}

/** What a group becomes when its last attempt is over. */
export type Complete = (group: OpenGroup) => Promise<Group>

/**
 * Gathers attempts by task. A group takes so many attempts and is complete when all of them are
 * over; further attempts at the task begin the next group. Groups that are smaller are complete when
 * somebody says so.
 */
export class Groups {
  readonly #open = new Map<TaskId, OpenGroup>()
  readonly #rounds = new Map<TaskId, number>()
  readonly #size: number
  readonly #complete: Complete
  #order = 0
  /** Groups that were written. */
  finished = 0

  constructor(size: number, complete: Complete) {
    this.#size = size
    this.#complete = complete
  }

  /** A place for an attempt: its group, and the number it has there. */
  join(task: Task): { readonly group: OpenGroup; readonly member: number } {
    const group = this.#open.get(task.id) ?? this.#begin(task)
    const member = group.members++
    group.running++
    if (group.members >= this.#size) this.#fill(group)
    return { group, member }
  }

  /** An attempt is over. Gives the group where it was the last. */
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

  #begin(task: Task): OpenGroup {
    const round = (this.#rounds.get(task.id) ?? 0) + 1
    this.#rounds.set(task.id, round)
    const id = (round === 1 ? task.id : `${task.id}~${round}`) as string as GroupId
    const group = {
      id,
      task,
      order: this.#order++,
      members: 0,
      running: 0,
      ended: [],
      isFull: false,
    }
    this.#open.set(task.id, group)
    return group
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
