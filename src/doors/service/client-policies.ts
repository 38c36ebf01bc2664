import type { Policy } from '../../base/core/policy.ts'
import { startTimer } from '../../base/core/process/timer.ts'
import { RefusedRequest } from '../door/refused-request.ts'

/** A policy that is lent; giving it back lets it be closed when nobody else uses it. */
export interface LentPolicy {
  readonly policy: Policy
  /** Its URI, if it is not the service's own. */
  readonly endpoint?: string
  giveBack(): void
}

interface Opened {
  readonly policy: Promise<Policy>
  users: number
  timer?: NodeJS.Timeout
}

/** What policies are opened with. */
export interface ClientPoliciesOptions {
  /** The service's own, which is lent until a trainer says where its weights are served. */
  readonly own: Policy
  readonly idleSeconds: number
  open(uri: string): Promise<Policy>
}

/** The endpoints that clients name: each opened once, and closed when nobody has used it for a while. */
export class ClientPolicies implements AsyncDisposable {
  readonly #options: ClientPoliciesOptions
  readonly #opened = new Map<string, Opened>()
  /** By trainer. */
  readonly #usual = new Map<string, LentPolicy>()

  constructor(options: ClientPoliciesOptions) {
    this.#options = options
  }

  /** How many are open. */
  get size(): number {
    return this.#opened.size
  }

  /** Lends the policy behind a URI, or the usual one of a trainer. */
  async lend(trainer: string, uri = this.#usual.get(trainer)?.endpoint): Promise<LentPolicy> {
    if (uri !== undefined) return await this.#lendOpened(uri)
    return { policy: this.#options.own, giveBack: () => undefined }
  }

  /** From now on, this is the usual one of a trainer; who was lent the one before keeps it. */
  async moveTo(trainer: string, uri: string): Promise<void> {
    const next = await this.#lendOpened(uri)
    this.#usual.get(trainer)?.giveBack()
    this.#usual.set(trainer, next)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#opened.values()]
    this.#opened.clear()
    for (const { timer } of all) clearTimeout(timer)
    for (const each of await Promise.allSettled(all.map(({ policy }) => policy))) {
      if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]()
    }
  }

  async #lendOpened(uri: string): Promise<LentPolicy> {
    const known = this.#opened.get(uri) ?? { policy: this.#openPolicy(uri), users: 0 }
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
      return { policy, endpoint: uri, giveBack }
    } catch (cause) {
      if (this.#opened.get(uri) === known) this.#opened.delete(uri)
      throw cause
    }
  }

  async #openPolicy(uri: string): Promise<Policy> {
    try {
      return await this.#options.open(uri)
    } catch (cause) {
      throw new RefusedRequest(400, `policy: ${(cause as Error).message}`)
    }
  }

  #closeLater(uri: string, opened: Opened): void {
    opened.timer = startTimer(() => {
      this.#opened.delete(uri)
      void opened.policy.then(policy => policy[Symbol.asyncDispose]())
    }, this.#options.idleSeconds * 1000).unref()
  }
}
