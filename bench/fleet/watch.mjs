// Imported by processes of the fleet's benchmark: writes how late their event loop was, and their memory, when they end.
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()
let most = 0
setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss())
}, 250).unref()
process.on('exit', () => {
  const { user, system } = process.cpuUsage()
  const figures = {
    role: process.argv[2],
    late: delay.percentile(99) / 1e6 - 10,
    memory: Math.round(Math.max(most, process.memoryUsage.rss()) / 1e6),
    cpu: (user + system) / 1000,
  }
  writeFileSync(`${process.env.FLEET_FIGURES}/${process.pid}.json`, JSON.stringify(figures))
})
