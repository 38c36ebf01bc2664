import { aroundPolicy } from '../../../base/core/around.ts'
import type { Instrument } from '../../../engine/rollout/attempt.ts'
import type { Listen } from '../events.ts'

/** Sends an event for every sample that is drawn, but not for replayed ones. */
export function watchSamples(listen: Listen): Instrument {
  return context => ({
    ...context,
    policy: aroundPolicy(context.policy, {
      async draw({ request, ask }) {
        const started = context.clock()
        const samples = await ask()
        const seconds = context.clock() - started
        for (const { finish, usage } of samples) {
          const { prompt, sampled, cached, server } = usage
          listen({
            kind: 'sample-end',
            tree: request.session,
            turn: request.key.turn,
            seconds,
            prompt,
            sampled,
            ...(cached !== undefined && { cached }),
            finish: finish.kind,
            ...(server !== undefined && { server }),
          })
        }
        return samples
      },
    }),
  })
}
