import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { commandLine } from '../../../base/core/names/program-name.ts'
import { serveModel } from '../../../doors/gateway/serving/server.ts'
import { baseModel } from '../../../learn/model/embedded.ts'
import { openModel } from '../../../learn/model/model.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'
import { counted, doorFlags, readDoor } from '../../listening.ts'

/** Serves an embedded model over HTTP. */
export const serveCommand: Command = {
  name: 'serve',
  usage: '[--model DIR] [--port N]',
  about:
    "Speaks SGLang's /generate (ids in, ids and log-probabilities out, streaming, aborting, new\n" +
    "weights from disk), OpenAI's completions, and the dialects of agents: OpenAI's Chat Completions and\n" +
    "Responses, Anthropic's Messages, Google's generateContent. Requests at one time share the model's\n" +
    'steps. Rolling against it gives the same trajectories as rolling the model in process.',
  examples: [
    'espalier serve --port 30000',
    'espalier roll --policy sglang:http://127.0.0.1:30000 --environment desk --tasks 16',
  ],
  settings: [],
  own: {
    model: {
      help: 'The model folder, or embedded for the base model of this package (default: embedded)',
      argument: 'DIR',
    },
    port: { help: 'The port; 0 takes any free one (default: 30000)', argument: 'N' },
    ...doorFlags,
    weights: {
      help: 'The folder that new weights may be taken from (default: the model folder)',
      argument: 'DIR',
    },
    name: { help: 'The name that clients may know the model by', argument: 'NAME' },
    threads: { help: 'Threads of the model (default: as many as cores)', argument: 'N' },
  },
  positionalCount: [0, 0],
  run: runServe,
}

async function runServe(invocation: Invocation): Promise<number> {
  const { own, json, terminal, signal } = invocation
  const { model: named = 'embedded', name, weights } = own
  const folder = named === 'embedded' ? baseModel : named.replace(/^embedded:/, '')
  const { port = 30_000 } = counted('port', own.port)
  if (!existsSync(join(folder, 'config.json'))) {
    throw new MisuseError(
      `${folder} is not a model folder (it has no config.json); \`espalier teach\` makes one`,
    )
  }
  await using model = await openModel({ folder }, counted('threads', own.threads))
  const options = {
    folder,
    port,
    ...readDoor(invocation),
    ...(weights !== undefined && { weightFolders: [weights] }),
    ...(name !== undefined && { name }),
  }
  await using server = await openNamed(`--port ${port}`, () => serveModel(model, options))
  const { url } = server
  if (json) terminal.print(JSON.stringify({ url, model: folder, kernel: model.kernel }))
  else terminal.print(`serving ${folder} at ${url}  (${model.threads} threads, ${model.kernel})`)
  // Only for the base model do we know the environment it was made for.
  const environment = folder === baseModel ? 'desk' : 'NAME'
  const roll = ['roll', '--policy', `sglang:${url}`, '--environment', environment, '--tasks', '16']
  terminal.tell(`next  ${commandLine(...roll)}`)
  if (!signal.aborted) await once(signal, 'abort')
  return 0
}
