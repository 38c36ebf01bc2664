// Our driver against a server of Tinker's API that somebody started: node --import tsx … KIND URL KEY [FILE]
import { appendFileSync } from 'node:fs'
import { openRecorder } from '../../../scripts/servers/recorder.ts'
import { driveTinker } from '../../servers/drive-tinker.ts'

const [kind = '', url = '', key = '', file] = process.argv.slice(2)
await using recorder = await openRecorder(url)
const promises = driveTinker(recorder.url, { kind, key })
try {
  for await (const { holds, words } of promises) console.log(`${holds ? 'ok   ' : 'FAIL '}${words}`)
  const passes = recorder.exchanges.filter(({ path }) => path.endsWith('/forward_backward'))
  const taken = passes.findLast(({ status }) => status < 300)
  console.log(`ok   passes are sent as ${taken?.type ?? 'JSON'}`)
  console.log('all told')
} catch (error) {
  console.log(`FAIL ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  const lines = recorder.exchanges.map((each, index) =>
    JSON.stringify({ line: index + 1, server: kind, ...each }),
  )
  if (file) appendFileSync(file, `${lines.join('\n')}\n`)
}
