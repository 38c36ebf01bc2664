import type { Elsewhere } from '../../run/run/elsewhere.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import { openWeightsDesk, type WeightsDesk } from './rollouts-policy.ts'

/** The trainer that gives no name; the only one if a service has one. */
export const unnamed = ''

/** Most trainers of a service: each stays known for as long as it runs. */
const most = 256

/** The trainers that share a service: each has weights, versions and pauses of its own. */
export class Trainers implements Disposable {
  readonly #elsewhere: Elsewhere | undefined
  readonly #tell: (line: string) => void
  readonly #desks = new Map<string, WeightsDesk>()

  /** `elsewhere` makes attempts of the trainer without a name; `tell` tells the operator a line. */
  constructor(elsewhere: Elsewhere | undefined, tell: (line: string) => void) {
    this.#elsewhere = elsewhere
    this.#tell = tell
    this.of(unnamed)
  }

  /** The desk of a trainer, opened if it is new. */
  of(name = unnamed): WeightsDesk {
    const known = this.#desks.get(name)
    if (known) return known
    if (name !== unnamed) this.#admit()
    const desk = this.#open(name)
    this.#desks.set(name, desk)
    return desk
  }

  /** What attempts of a trainer are made with: whoever makes them elsewhere knows the versions of one. */
  partsOf(name: string, parts: RollParts): RollParts {
    if (name === unnamed) return parts
    const { elsewhere: _, ...here } = parts
    return here
  }

  entries(): Iterable<readonly [name: string, desk: WeightsDesk]> {
    return this.#desks
  }

  [Symbol.dispose](): void {
    for (const desk of this.#desks.values()) desk[Symbol.dispose]()
  }

  #admit(): void {
    if (this.#elsewhere && this.#elsewhere.isOpen === undefined) {
      throw new RefusedRequest(
        400,
        'trainer: the workers and threads of this service know one version of the weights; start a service for each trainer',
      )
    }
    if (this.#desks.size >= most) {
      throw new RefusedRequest(429, `trainer: this service knows ${most} trainers already`)
    }
  }

  #open(name: string): WeightsDesk {
    const elsewhere = this.#elsewhere
    const who = name === unnamed ? 'a trainer' : `trainer "${name}"`
    return openWeightsDesk({
      tell: line => this.#tell(`${who} ${line}`),
      ...(elsewhere && name === unnamed && { elsewhere }),
    })
  }
}
