"""The forecasting contract: what is asked of a forecast, and what is handed back.

Names and fields are the published ones. What a debate could not yield is null and named in
`report.gaps`; nothing is made up in its place.
"""
