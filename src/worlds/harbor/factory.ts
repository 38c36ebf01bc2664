import { z } from 'zod'
import { environmentFactory } from '../../engine/environments/factory.ts'
import { reachWorkspaces, workspaceOptions } from '../workspaces/world/named.ts'
import { harbor } from './harbor.ts'

/** `harbor`, opened by name: `harbor:DIR`, `harbor:DIR,memory=2048`. */
export const harborFactory = environmentFactory({
  about: 'Task folders of Harbor or terminal-bench: files, a shell, their own tests as reward.',
  options: workspaceOptions.extend({
    variant: z.string().min(1),
    installs: z.enum(['refused', 'skipped']).optional(),
  }),
  open: async ({ variant, ...options }) => harbor(variant, await reachWorkspaces(options)),
})
