import type { Renderer } from '@espalier/text'
import type { ModelRenderer } from '@espalier/text/chat'
import type { Condenser } from '../../base/core/condenser.ts'
import {
  type CondenserNeeds,
  defaultCondensing,
  openCondenser,
} from '../../engine/condensers/registry.ts'
import type { CondenseSettings } from '../../engine/rollout/attempt.ts'
import { openNamed } from './open-named.ts'
import { openSpeaker } from './open-speaker.ts'
import { isUserPart, loadUserPart } from './user-part.ts'

/**
 * Opens the condenser that `--condense` names with its options, or the user's own. An unknown name or
 * option is a wrong value of the flag.
 */
export function openCondense(
  name: string,
  renderer: Renderer & Partial<Pick<ModelRenderer, 'tokenizer'>>,
): Promise<CondenseSettings & AsyncDisposable> {
  return openNamed(`--condense ${name}`, async () => {
    if (!isUserPart(name)) return await openCondenser(name, needsOf(renderer))
    const part = await loadUserPart(name)
    if (!isCondenser(part)) {
      throw new TypeError(`${name} is not a condenser: an object with a name and open()`)
    }
    return { ...defaultCondensing, condenser: part, [Symbol.asyncDispose]: async () => {} }
  })
}

function needsOf({ tokenizer }: Partial<Pick<ModelRenderer, 'tokenizer'>>): CondenserNeeds {
  return {
    openSpeaker,
    ...(tokenizer && { countTokens: text => tokenizer.encodeOrdinary(text).length }),
  }
}

function isCondenser(part: unknown): part is Condenser {
  return typeof part === 'object' && part !== null && 'name' in part && 'open' in part
}
