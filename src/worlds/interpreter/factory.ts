import { z } from 'zod'
import { environmentFactory } from '../../engine/environments/factory.ts'
import { interpreter } from './interpreter.ts'
import type { Language } from './language.ts'

/** `interpreter`, opened by name: `interpreter:javascript`, `interpreter:python,style=fences`. */
export const interpreterFactory = environmentFactory({
  about: 'Python or JavaScript in a closed process, an answer compared; makes its own tasks.',
  options: z.strictObject({
    variant: z.enum(['python', 'javascript', 'both']).default('python'),
    style: z.enum(['calls', 'fences']).optional(),
    match: z.enum(['exact', 'number']).optional(),
    seconds: z.coerce.number().positive().optional(),
    memory: z.coerce.number().int().min(64).max(4096).optional(),
    characters: z.coerce.number().int().min(100).max(1_000_000).optional(),
    cpu: z.coerce.number().int().min(1).optional(),
    walls: z.enum(['required', 'wanted']).optional(),
    workers: z.coerce.number().int().min(1).optional(),
    warm: z.coerce.number().int().min(0).optional(),
  }),
  open({ variant, ...rest }) {
    const languages: readonly Language[] = variant === 'both' ? ['python', 'javascript'] : [variant]
    const given = Object.entries(rest).filter(([, value]) => value !== undefined)
    return interpreter({ languages, ...Object.fromEntries(given) })
  },
})
