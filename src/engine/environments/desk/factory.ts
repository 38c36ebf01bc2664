import { z } from 'zod'
import { environmentFactory } from '../factory.ts'
import { desk } from './desk.ts'

/** `desk`, opened by name. */
export const deskFactory = environmentFactory({
  about:
    'A service desk with a customer, a database and rules to be found out; makes its own tasks.',
  options: z.strictObject({
    level: z
      .enum(['1', '2', '3', 'mixed'])
      .default('mixed')
      .transform(level => (level === 'mixed' ? level : (Number(level) as 1 | 2 | 3))),
    length: z.enum(['short', 'long']).default('short'),
    rules: z.enum(['hidden', 'told']).default('hidden'),
  }),
  open: desk,
})
