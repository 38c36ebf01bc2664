import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { textOf } from '@espalier/text'
import type { Environment, Task } from '../../base/core/environment.ts'
import { type PassageTask, passages } from '../../engine/environments/built-in/passages.ts'
import { openNamed } from '../../run/settings/open-named.ts'
import { openRunReader } from '../../run/store/store.ts'
import { checkTaskSource, readTasks } from '../../run/tasks/tasks.ts'
import type { PassageText } from './condenser-pairs.ts'

/** Whether a source is a stored run, and not a file of questions. */
export function isRun(source: string): boolean {
  return (
    existsSync(source) && statSync(source).isDirectory() && existsSync(join(source, 'run.json'))
  )
}

/** Questions with passages: from a file, or made from the seed if the source is a number. */
export async function* readPassageTasks(
  source: string,
  seed: number,
): AsyncGenerator<Task<PassageTask>> {
  const count = /^\d+$/.test(source) ? Number(source) : undefined
  yield* readTasks(passages(), count ?? source, { seed })
}

/** Refuses a source that is not there, holds nothing or begins wrongly, before a set is begun. */
export async function checkSource(source: string): Promise<void> {
  if (/^\d+$/.test(source) || isRun(source)) return
  await openNamed(undefined, () => checkTaskSource(passages() as Environment, source))
}

/** Texts to condense: the passages of questions, each with the questions that it answers. */
export async function* passageTexts(source: string, seed: number): AsyncGenerator<PassageText> {
  for await (const { id, data } of readPassageTasks(source, seed)) {
    const { question, answer, supporting, passages: all } = data
    for (const [index, { title, text }] of all.entries()) {
      const isAsked = supporting.includes(title)
      yield {
        id: `${id}#${index}`,
        text: title === '' ? text : `${title}: ${text}`,
        questions: isAsked ? [{ question, answers: answer }] : [],
      }
    }
  }
}

/** Texts to condense: what users and tools said in the trajectories of a run. */
export async function* runTexts(run: string): AsyncGenerator<PassageText> {
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    for (const { trajectory } of group.members) {
      for (const [index, { role, content }] of trajectory.messages.entries()) {
        if (role !== 'user' && role !== 'tool') continue
        yield { id: `${trajectory.id}#${index}`, text: textOf(content), questions: [] }
      }
    }
  }
}
