import { z } from 'zod'
import { environmentFactory } from '../factory.ts'
import { openMcpTools } from '../tools/mcp.ts'
import { calculator } from './calculator.ts'
import { keyValue } from './key-value.ts'
import { passages } from './passages.ts'
import { recordedWorld } from './recorded.ts'
import { singleTurn } from './single-turn.ts'
import { type SmallTalk, smallTalk } from './small-talk.ts'
import { toolLoop } from './tool-loop.ts'

const match = z.enum(['exact', 'number']).default('exact')

/** `calculator`, opened by name. */
export const calculatorFactory = environmentFactory({
  about: 'Arithmetic with a tool that calculates; makes its own tasks.',
  options: z.strictObject({}),
  open: calculator,
})

/** `key-value`, opened by name. */
export const keyValueFactory = environmentFactory({
  about: 'A small store behind four tools; makes its own tasks.',
  options: z.strictObject({}),
  open: keyValue,
})

/** `passages`, opened by name. */
export const passagesFactory = environmentFactory({
  about: 'A question over several passages; makes its own tasks, whose answers need two of them.',
  options: z.strictObject({}),
  open: () => passages(),
})

/** `recorded`, opened by name. */
export const recordedFactory = environmentFactory({
  about:
    'A conversation of the past goes on: calls that were made then get the results seen then (`tasks record`).',
  options: z.strictObject({}),
  open: recordedWorld,
})

/** `single-turn`, opened by name. */
export const singleTurnFactory = environmentFactory({
  about: 'One prompt, one answer, compared with the task’s answer.',
  options: z.strictObject({ match }),
  open: singleTurn,
})

/** `tool-loop`, opened by name. */
export const toolLoopFactory = environmentFactory({
  about: 'A prompt, the tools of an MCP server, an answer compared with the task’s.',
  options: z.strictObject({ match, mcp: z.url() }),
  open: ({ mcp, match }) =>
    toolLoop({ match, tools: call => openMcpTools({ url: mcp }, call).then(({ tools }) => tools) }),
})

/** A task of plain lines for small models, opened by name. */
export const smallTalkFactory = (name: SmallTalk) =>
  environmentFactory({
    about: talkAbout[name],
    options: z.strictObject({}),
    open: () => smallTalk(name),
  })

const talkAbout: Readonly<Record<SmallTalk, string>> = {
  calc2:
    'Two sums by a calculator in plain words, for small pretrained models; makes its own tasks.',
  signs: 'Like calc2, with signs that differ.',
  guess: 'A number from 1 to 7 in three guesses.',
  cheaper: 'Which of two things is cheaper, by a price list that is asked.',
}
