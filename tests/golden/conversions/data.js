window.BENCHMARK_DATA = {
  "lastUpdate": 1764115200000,
  "repoUrl": "https://example.org/a/b",
  "entries": {
    "Inserts": [
      {
        "commit": {"id": "1111111111111111111111111111111111111111", "message": "One", "timestamp": "2025-11-25T01:00:00Z"},
        "date": 1764028800000,
        "tool": "customSmallerIsBetter",
        "benches": [
          {"name": "insert", "value": 125.5, "unit": "us/iter", "range": "± 3"},
          {"name": "insert - memory", "value": 24.5, "unit": "avg mem", "extra": "max mem: 30"}
        ]
      },
      {
        "commit": {"id": "2222222222222222222222222222222222222222", "message": "Two", "timestamp": "2025-11-26T01:00:00Z"},
        "date": 1764115200000,
        "tool": "customSmallerIsBetter",
        "benches": [{"name": "insert", "value": 127, "unit": "us/iter"}]
      }
    ],
    "Reads": [
      {"commit": {"id": "2222222222222222222222222222222222222222"}, "date": 1764115200000, "tool": "benchmarkjs",
       "benches": [{"name": "point", "value": 8000, "unit": "ops/sec"}]}
    ]
  }
}
