import { isExactAnswer } from '../../base/core/answer.ts'
import type { Environment } from '../../base/core/environment.ts'
import {
  openingOf,
  type PromptTask,
  promptTask,
} from '../../engine/environments/built-in/prompt-task.ts'
import { environment } from '../../engine/environments/environment.ts'
import { usualFolder, type Workspaces } from '../workspaces/contract.ts'

/** What containers are made from. */
const image = { name: 'docker.io/library/node:22' }

/** Tasks of a file, each with an empty folder to work in; what was answered last is compared with the task's `answer`. */
export function answers(workspaces: Workspaces): Environment<PromptTask> {
  return environment({
    name: 'answers',
    task: promptTask,
    async open({ data, signal, defer }) {
      const source = { puts: [], workingFolder: usualFolder, image }
      const workspace = await workspaces.open(source, { signal })
      defer(() => workspace[Symbol.asyncDispose]())
      return { opening: openingOf(data) }
    },
    reward: { right: ({ task, answer }) => Number(isExactAnswer(answer, task.data)) },
    [Symbol.asyncDispose]: () => workspaces[Symbol.asyncDispose](),
  })
}
