import { resolve } from 'node:path'
import webpack from 'webpack'

const options = {
  mode: 'production',
  target: 'node20',
  entry: './bundle/server.js',
  output: { path: resolve('out'), filename: 'webpack.cjs' },
  externals: { 'pg-native': 'commonjs pg-native' },
  optimization: { minimize: false },
}
webpack(options, (error, stats) => {
  const trouble = error ?? (stats.hasErrors() ? stats.toString('errors-only') : null)
  if (trouble !== null) throw new Error(String(trouble))
})
