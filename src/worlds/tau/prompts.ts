import type { UserPrompts } from '../../engine/environments/users/strategy.ts'
import type { TauPrompts } from './domain.ts'
import { fillTemplate } from './python-source.ts'
import { RESPOND } from './task.ts'

/** tau-bench's own prompts for simulated users, from the templates of its checkout. */
export function userPrompts({ user, supervisor }: TauPrompts): UserPrompts {
  return {
    system: (strategy, instruction) =>
      fillTemplate(strategy === 'react' ? user.react : user.plain, {
        instruction_display: instruction === undefined ? '' : `\n\nInstruction: ${instruction}\n`,
      }),
    verify: (response, transcript) => fillTemplate(supervisor.verify, { response, transcript }),
    reflect: (response, transcript) => fillTemplate(supervisor.reflect, { response, transcript }),
  }
}

/** The instruction that the text agents get after the list of tools. */
export function policyInstruction({ policy }: TauPrompts, kind: 'react' | 'act'): string {
  return fillTemplate(policy[kind], {
    RESPOND_ACTION_NAME: RESPOND,
    RESPOND_ACTION_FIELD_NAME: 'content',
  })
}
