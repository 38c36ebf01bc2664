import { type Clock, systemClock } from '../../base/core/process/clock.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { randomAt, seedOf } from '../../base/math/random.ts'
import { isPassing } from '../../engine/policies/transport/server-error.ts'

/** How patient a speaker is with its server. */
export interface PatienceOptions {
  /** Attempts in all. @default 6 */
  readonly attempts?: number
  /** Seconds before the second attempt, doubled before each further one. @default 0.5 */
  readonly firstWaitSeconds?: number
  readonly clock?: Clock
}

/** A server that asks for more is not waited for, as by policies. */
const longestSeconds = 1800

/**
 * A speaker that asks again when its server was busy, broken or gone for a moment, as policies do.
 * Without it one refused request of a simulated user would cost a whole conversation.
 */
export function patientSpeaker(speaker: Speaker, options: PatienceOptions = {}): Speaker {
  const settings = { attempts: 6, firstWaitSeconds: 0.5, clock: systemClock, ...options }
  const { attempts, firstWaitSeconds, clock } = settings
  return {
    name: speaker.name,
    async say(messages, call) {
      const seed = seedOf('patience', call.seed ?? 0, messages.length)
      for (let attempt = 1; ; attempt++) {
        try {
          return await speaker.say(messages, call)
        } catch (cause) {
          if (attempt >= attempts || !isPassing(cause)) throw cause
          const { retryAfterSeconds = 0 } = cause
          if (retryAfterSeconds > longestSeconds) throw cause
          const wait = firstWaitSeconds * 2 ** (attempt - 1) * (0.5 + randomAt(seed, attempt) / 2)
          await clock.sleep((retryAfterSeconds + wait) * 1000, call.signal)
        }
      }
    },
  }
}
