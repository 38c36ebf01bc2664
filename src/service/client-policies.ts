import type { Policy } from '../core/policy.ts'

/** A policy that is lent; giving it back lets it be closed when nobody else uses it. */
export interface LentPolicy {
  readonly policy: Policy
  giveBack(): void
}

interface Opened {
  readonly policy: Promise<Policy>
  users: number
  timer?: NodeJS.Timeout
}

/** The endpoints that clients name: each opened once, and closed when nobody has used it for a while. */
export class ClientPolicies implements AsyncDisposable {
  readonly #open: (uri: string) => Promise<Policy>
  readonly #idleSeconds: number
  readonly #opened = new Map<string, Opened>()

  constructor(open: (uri: string) => Promise<Policy>, idleSeconds: number) {
    this.#open = open
    this.#idleSeconds = idleSeconds
  }

  /** How many are open. */
  get size(): number {
    return this.#opened.size
  }

  async lend(uri: string): Promise<LentPolicy> {
    const known = this.#opened.get(uri) ?? { policy: this.#open(uri), users: 0 }
    this.#opened.set(uri, known)
    clearTimeout(known.timer)
    known.users++
    try {
      const policy = await known.policy
      let isBack = false
      const giveBack = (): void => {
        if (isBack) return
        isBack = true
        known.users--
        if (known.users === 0) this.#closeLater(uri, known)
      }
      return { policy, giveBack }
    } catch (cause) {
      if (this.#opened.get(uri) === known) this.#opened.delete(uri)
      throw cause
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#opened.values()]
    this.#opened.clear()
    for (const { timer } of all) clearTimeout(timer)
    for (const each of await Promise.allSettled(all.map(({ policy }) => policy))) {
      if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]()
    }
  }

  #closeLater(uri: string, opened: Opened): void {
    opened.timer = setTimeout(() => {
      this.#opened.delete(uri)
      void opened.policy.then(policy => policy[Symbol.asyncDispose]())
    }, this.#idleSeconds * 1000).unref()
  }
}
