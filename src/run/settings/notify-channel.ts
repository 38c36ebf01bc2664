import { z } from 'zod'

/** How people are notified: by a webhook of some dialect, or by a program. */
export function channelSchema() {
  const common = {
    /** Which events are sent here. */
    on: z
      .array(z.enum(['failure', 'warning', 'end']))
      .min(1)
      .optional(),
  }
  const text = z.string().min(1)
  /** An address that holds a token comes from a file or a variable, so that no config has it. */
  const hidden = { urlFile: text.optional(), urlVariable: text.optional() }
  const signed = { secretFile: text.optional(), secretVariable: text.optional() }
  const webhook = { url: z.url().optional(), ...hidden, ...signed, ...common }
  return z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('webhook'), ...webhook }),
    z.strictObject({ kind: z.literal('slack'), ...hidden, ...common }),
    z.strictObject({ kind: z.literal('dingtalk'), ...hidden, ...signed, ...common }),
    z.strictObject({ kind: z.literal('feishu'), ...hidden, ...signed, ...common }),
    z.strictObject({ kind: z.literal('command'), command: z.array(text).min(1), ...common }),
  ])
}

/** A channel as a config has it. */
export type ChannelSettings = z.output<ReturnType<typeof channelSchema>>
