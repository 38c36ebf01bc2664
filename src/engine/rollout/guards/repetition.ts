import type { Guard } from '../../../base/core/guard.ts'

/** When a sample repeats itself. */
export interface RepetitionGuardOptions {
  /** Longest cycle of tokens that is looked for. @default 64 */
  readonly cycle?: number
  /** How often in a row it must stand. @default 8 */
  readonly times?: number
}

/** Stops a sample that says the same tokens again and again. */
export function repetitionGuard({ cycle = 64, times = 8 }: RepetitionGuardOptions = {}): Guard {
  return {
    name: 'repetition',
    watch({ ids }) {
      for (let length = 1; length <= cycle && length * times <= ids.length; length++) {
        if (isCyclic(ids, length, times)) return true
      }
      return false
    },
  }
}

/** Whether the last `length * times` tokens are one run of `length` tokens, repeated. */
function isCyclic(ids: Int32Array, length: number, times: number): boolean {
  const from = ids.length - length * (times - 1)
  for (let index = ids.length - 1; index >= from; index--) {
    if (ids[index] !== ids[index - length]) return false
  }
  return true
}
