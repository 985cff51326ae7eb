"""What is kept for the engines that use it: functions, constraints, roles, privileges, tokens."""
