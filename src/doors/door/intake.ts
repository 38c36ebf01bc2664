import { RefusedRequest } from './refused-request.ts'

/** How many bytes of bodies may be in memory at one time before they are read whole. */
export interface IntakeLimits {
  readonly all: number
  /** Of one peer, so that none can take the place of all others. */
  readonly perPeer: number
}

/** The bytes of one body while it is read; disposing of it makes their room free. */
export interface Reading extends Disposable {
  /** Throws if there is no room for so many more. */
  take(bytes: number): void
}

/** Counts the bytes of bodies that are being read, over all connections and for each peer. */
export class Intake {
  readonly #limits: IntakeLimits
  readonly #peers = new Map<string, number>()
  #all = 0

  constructor(limits: IntakeLimits) {
    this.#limits = limits
  }

  /** Bytes that are held now. */
  get held(): number {
    return this.#all
  }

  open(peer: string): Reading {
    let taken = 0
    return {
      take: bytes => {
        const own = (this.#peers.get(peer) ?? 0) + bytes
        if (own > this.#limits.perPeer || this.#all + bytes > this.#limits.all) throw tooMuch
        this.#peers.set(peer, own)
        this.#all += bytes
        taken += bytes
      },
      [Symbol.dispose]: () => {
        const left = (this.#peers.get(peer) ?? 0) - taken
        if (left > 0) this.#peers.set(peer, left)
        else this.#peers.delete(peer)
        this.#all -= taken
      },
    }
  }
}

const tooMuch = new RefusedRequest(503, 'too many long requests are being read: come again')
