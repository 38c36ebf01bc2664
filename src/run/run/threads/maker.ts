import { describeCause } from '../../../base/core/failure.ts'
import { makeLane } from '../../../base/core/lane.ts'
import { withoutSecrets } from '../../../base/core/process/secrets.ts'
import { openBudget, type SpentKind } from '../budget.ts'
import type { ServedRun } from '../served/served-run.ts'
import { type MadeBatch, makeMadePost } from './made-batch.ts'
import type { FromThread, SharedWork, ToThread } from './messages.ts'

/** An order for an attempt or a group. */
export type MakeOrder = Extract<ToThread, { readonly kind: 'make' | 'make-group' }>
type Order<Kind extends MakeOrder['kind']> = MakeOrder & { readonly kind: Kind }

/** Why an order was not followed. */
export type NotMade = Extract<FromThread, { readonly kind: 'spent' | 'failed' }>

/** How orders are followed. */
export interface MakerOptions {
  /** Attempts at one time. */
  readonly width: number
  readonly post: (batch: MadeBatch) => void
  readonly send: (news: NotMade) => void
}

/** The allowance of a group did not suffice. */
class SpentError extends Error {
  readonly of: SpentKind

  constructor(of: SpentKind) {
    super(`the allowance of ${of} is spent`)
    this.of = of
  }
}

/** Makes what is ordered of one run; what is made is posted as the journal has it. */
export class Maker {
  readonly #opening: Promise<ServedRun>
  readonly #send: MakerOptions['send']
  readonly #post: ReturnType<typeof makeMadePost>
  /** A few more attempts are ordered than may run at one time, so that nobody waits for the next. */
  readonly #lane: ReturnType<typeof makeLane>
  readonly #underWay = new Map<number, AbortController>()
  /** Orders whose result nobody waits for. */
  readonly #withdrawn = new Set<number>()
  /** What the last group that was ordered had in common with others. */
  #shared: SharedWork | undefined

  constructor(opening: Promise<ServedRun>, { width, post, send }: MakerOptions) {
    this.#opening = opening
    this.#send = send
    this.#post = makeMadePost(post)
    this.#lane = makeLane('rollouts', width)
  }

  /** Follows an order once the run is open; it may be withdrawn before. */
  follow(order: MakeOrder): void {
    this.#underWay.set(order.id, new AbortController())
    void this.#opening.then(
      run => this.#tellFailure(order.id, this.#makeOrdered(run, order)),
      () => undefined,
    )
  }

  withdraw(id: number): void {
    const stop = this.#underWay.get(id)
    if (!stop) return
    this.#withdrawn.add(id)
    stop.abort(new Error('it was withdrawn'))
  }

  async #makeOrdered(run: ServedRun, order: MakeOrder): Promise<void> {
    if (order.kind === 'make') await this.#make(run, order)
    else await this.#makeGroup(run, order)
  }

  async #make(run: ServedRun, { id, work, making }: Order<'make'>): Promise<void> {
    const { signal } = this.#underWay.get(id)!
    const served = await this.#lane.run({ signal }, () => run.make(work, { signal, making }))
    if (served.kind === 'made') this.#post.addAttempt(id, served, 'alone')
    else this.#send({ kind: 'spent', id, of: served.of })
  }

  /** Makes all attempts of a group and weighs them; each is sent when it has ended. */
  async #makeGroup(run: ServedRun, ordered: Order<'make-group'>): Promise<void> {
    const { id, making } = ordered
    this.#shared = ordered.shared ?? this.#shared
    const work = { ...this.#shared!, ...ordered.work }
    const stop = this.#underWay.get(id)!
    const { signal } = stop
    const { group, task, order, members: count, step } = work
    using budget = work.allowance && openBudget(work.allowance)
    const rolling = Array.from({ length: count }, async (_, member) => {
      const call = { signal, making: `${making}/${member}`, ...(budget && { budget }) }
      const served = await this.#lane.run({ signal }, () => run.make({ ...work, member }, call))
      if (served.kind === 'spent') throw new SpentError(served.of)
      this.#post.addAttempt(id, served, 'in its group')
      return served.members
    })
    // With one that fails the others end: the group comes whole from here, or not at all.
    for (const each of rolling) each.catch(error => stop.abort(error))
    const members = (await Promise.all(rolling)).flat()
    const header = { id: group, task, ...(step !== undefined && { step }) }
    this.#post.addGroup(id, { group: run.weigh(header, members), task, order })
  }

  /** Runs an order, and tells why it was not followed. */
  async #tellFailure(id: number, making: Promise<void>): Promise<void> {
    try {
      await making
    } catch (error) {
      if (error instanceof SpentError) this.#send({ kind: 'spent', id, of: error.of })
      else if (!this.#withdrawn.has(id)) {
        this.#send({ kind: 'failed', id, reason: withoutSecrets(describeCause(error)) })
      }
    } finally {
      this.#withdrawn.delete(id)
      this.#underWay.delete(id)
    }
  }
}
