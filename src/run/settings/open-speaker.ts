import { absences } from '../../base/core/process/absences.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { chatSpeaker, speakerOf } from '../../engine/policies/speaker.ts'
import { awayReason } from '../../engine/policies/transport/server-error.ts'
import { findModelOf, openRenderer } from './model-source.ts'
import { openPolicy, policyScheme } from './open-policy.ts'

/** The policy that a name means, and what it is asked with: the key, and after the `#` of a server its model. */
export function readSpeaker(text: string): {
  readonly uri: string
  readonly key?: string
  readonly servedModel?: string
} {
  // In the name of a folder or a file a `#` is part of it.
  const [, uri = text, served] = /^([a-z-]+:https?:\/\/[^#]*)#(.*)$/i.exec(text) ?? []
  const key = process.env.ESPALIER_SPEAKER_KEY ?? process.env.ESPALIER_POLICY_KEY
  return { uri, ...(key !== undefined && { key }), ...(served && { servedModel: served }) }
}

/**
 * Opens a model that judges, condenses or plays a user, by its URI: `openai:URL` is sent messages;
 * every other policy is used through the renderer of the model it serves. The served name may follow
 * after a `#`.
 */
export async function openSpeaker(text: string): Promise<Speaker> {
  const { uri, ...options } = readSpeaker(text)
  const { rest, scheme } = policyScheme(uri)
  if (scheme?.onlyChats) return waitingFor(chatSpeaker(rest, options))
  const policy = await openPolicy(uri, { ...options, absences })
  return speakerOf(await openRenderer(await findModelOf(policy)), policy)
}

/** A speaker whose server, while it is away, is waited for by the run. */
function waitingFor(speaker: Speaker & AsyncDisposable): Speaker & AsyncDisposable {
  const { name: server } = speaker
  return {
    ...speaker,
    say(messages, call) {
      const ask = () => speaker.say(messages, call)
      return absences.ask({ server, isAway: awayReason, ask, signal: call.signal })
    },
  }
}
