import { environmentFactory } from '../../engine/environments/factory.ts'
import { reachWorkspaces, workspaceOptions } from '../workspaces/world/named.ts'
import { repair } from './repair.ts'

/** `repair`, opened by name. */
export const repairFactory = environmentFactory({
  about:
    'Small programs with a mistake each, files and a shell, tests as reward; makes its own tasks.',
  options: workspaceOptions,
  open: async options => repair(await reachWorkspaces(options)),
})
