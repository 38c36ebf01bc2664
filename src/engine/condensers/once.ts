import { createHash } from 'node:crypto'
import type { Call } from '../../base/core/call.ts'

/** Work that is done once per content, even if several callers ask at the same time. */
export interface Once<Result> {
  do(content: readonly string[], call: Call, work: () => Promise<Result>): Promise<Result>
  /** How often the work was done. */
  readonly done: number
}

interface Entry<Result> {
  readonly result: Promise<Result>
  readonly owner: AbortSignal
}

/** Remembers the results of up to `most` contents, and forgets the least recently asked for. */
export function makeOnce<Result>(most = 50_000): Once<Result> {
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
          // The work ran under another caller's signal, which aborted: try again under ours.
          if (!known.owner.aborted || known.owner === call.signal) throw error
        }
      }
    },
  }
}

function hash(content: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('base64')
}
