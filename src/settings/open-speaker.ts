import type { Speaker } from '../core/speaker.ts'
import { chatSpeaker, speakerOf } from '../policies/speaker.ts'
import { openModelOf, openRenderer } from './model-source.ts'
import { openPolicy } from './open-policy.ts'

/**
 * Opens a model that judges, condenses or plays a user, by its URI: `openai:URL` is sent messages;
 * every other policy is used through the renderer of the model it serves. The served name may follow
 * after a `#`.
 */
export async function openSpeaker(text: string): Promise<Speaker> {
  const [uri = '', served] = text.split('#')
  const key = process.env.ESPALIER_SPEAKER_KEY ?? process.env.ESPALIER_POLICY_KEY
  const options = { ...(key !== undefined && { key }), ...(served && { servedModel: served }) }
  if (uri.startsWith('openai:')) return chatSpeaker(uri.slice('openai:'.length), options)
  const policy = await openPolicy(uri, options)
  return speakerOf(await openRenderer(await openModelOf(policy)), policy)
}
