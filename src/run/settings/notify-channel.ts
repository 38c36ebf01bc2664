import { z } from 'zod'

/** How people are notified: by a webhook, or by a program. */
export function channelSchema() {
  const text = z.string().min(1)
  const common = {
    /** Which events are sent here. */
    on: z
      .array(z.enum(['failure', 'warning', 'end']))
      .min(1)
      .optional(),
  }
  return z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('webhook'),
      url: z.url().optional(),
      /** An address that holds a token comes from a file or a variable, so that no config has it. */
      urlFile: text.optional(),
      urlVariable: text.optional(),
      secretFile: text.optional(),
      secretVariable: text.optional(),
      ...common,
    }),
    z.strictObject({ kind: z.literal('command'), command: z.array(text).min(1), ...common }),
  ])
}

/** A channel as a config has it. */
export type ChannelSettings = z.output<ReturnType<typeof channelSchema>>
