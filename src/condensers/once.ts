import { createHash } from 'node:crypto'
import type { Call } from '../core/call.ts'

/** Work that is done once for each content, however many ask for it at one time. */
export interface Once<Result> {
  do(content: readonly string[], call: Call, work: () => Promise<Result>): Promise<Result>
  /** How often the work was done. */
  readonly done: number
}

interface Entry<Result> {
  readonly result: Promise<Result>
  readonly owner: AbortSignal
}

/** Remembers the results of up to `most` contents; the one that was asked for longest ago goes first. */
export function openOnce<Result>(most = 50_000): Once<Result> {
  const entries = new Map<string, Entry<Result>>()
  let done = 0

  function begin(key: string, { signal }: Call, work: () => Promise<Result>): Promise<Result> {
    done++
    const result = work()
    entries.set(key, { result, owner: signal })
    // A failure is not remembered: whoever asks next tries again.
    result.catch(() => {
      if (entries.get(key)?.result === result) entries.delete(key)
    })
    for (const oldest of entries.keys()) {
      if (entries.size <= most) break
      entries.delete(oldest)
    }
    return result
  }

  return {
    get done() {
      return done
    },
    async do(content, call, work) {
      const key = hash(content)
      for (;;) {
        call.signal.throwIfAborted()
        const known = entries.get(key)
        if (!known) return await begin(key, call, work)
        entries.delete(key)
        entries.set(key, known)
        try {
          return await known.result
        } catch (error) {
          // Somebody else's attempt was stopped while it worked for both.
          if (!known.owner.aborted || known.owner === call.signal) throw error
        }
      }
    },
  }
}

function hash(content: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('base64')
}
