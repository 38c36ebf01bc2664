import type { Environment, Task } from '../../base/core/environment.ts'
import { type ReadTasksOptions, readTasks, type TaskSource } from './tasks.ts'

/** All tasks of a source by their ids; none if there is no source. */
export async function tasksById(
  environment: Environment,
  source: TaskSource | undefined,
  options: ReadTasksOptions,
): Promise<ReadonlyMap<string, Task>> {
  const tasks = new Map<string, Task>()
  if (source === undefined) return tasks
  for await (const task of readTasks(environment, source, options)) tasks.set(task.id, task)
  return tasks
}
